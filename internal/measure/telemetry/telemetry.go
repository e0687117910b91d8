// Package telemetry makes metrics of what an engine does. It sees every step (internal/measure/steps) and changes
// nothing.
package telemetry

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
)

// Options configure a Telemetry. Zero fields mean the defaults.
type Options struct {
	// LatencyBuckets are the upper bounds of latency histograms in seconds, rising; default 0.5 ms to 10 s.
	LatencyBuckets []float64
	// PromiseChanged is called when observations come to contradict the promises of policies, and when they no longer
	// do. The owner of the engine calls it, with the log locked. It may be nil.
	PromiseChanged func(PromiseChange)
	// Apps is how many apps have series of their own in the metrics: those that are called first. Others are counted
	// together, under the name Other. Default 500.
	Apps int
	// AppsFull is called once, with the first app that has none. It may be nil.
	AppsFull func(app string)
	// TraceID returns the trace of a query, "" for one without: an exemplar of the latency histogram. It may be nil.
	TraceID func(serving.QueryID) string
}

// Telemetry is a view of an engine's log. Only the owner of the engine may call Outcome. Any goroutine may call the
// other methods.
type Telemetry struct {
	log      *steps.Log
	registry *prometheus.Registry
	metrics  *metrics
	stats    *stats
	promises *promises
	content  *complexity

	names      *names
	accuracies *accuracies
}

// DefaultApps is the default of Options.Apps.
const DefaultApps = 500

// New returns a Telemetry with a Prometheus registry of its own, which views the log of an engine with this spec. It
// keeps spec.
func New(spec *serving.Spec, log *steps.Log, o Options) *Telemetry {
	if len(o.LatencyBuckets) == 0 {
		o.LatencyBuckets = []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10}
	}
	if o.Apps <= 0 {
		o.Apps = DefaultApps
	}
	t := &Telemetry{log: log, registry: prometheus.NewRegistry(), stats: newStats(spec)}
	t.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r := registry{t.registry, make(labelled)}
	t.names = newNames(o.Apps, o.AppsFull)
	t.metrics = newMetrics(r, spec, o.LatencyBuckets, t.names)
	t.metrics.traceID = o.TraceID
	t.promises = newPromises(r, spec, t.names, o.PromiseChanged)
	t.content = newComplexity(r, spec, t.names)
	t.accuracies = newAccuracies(r, t.names)
	log.View(t.see)
	return t
}

// see takes a step of the engine.
func (t *Telemetry) see(s *steps.Step) {
	for k := range s.In {
		if s.In[k].Kind == engine.SpecGrown {
			t.grow(s.In[k].Growth.Spec)
		}
	}
	t.metrics.observe(s)
	t.stats.observe(s)
	t.promises.observe(s.Now, s.In, s.Out)
	t.content.observe(s)
}

// grow adds the apps and variants of a grown spec.
func (t *Telemetry) grow(spec *serving.Spec) {
	t.metrics.grow(spec)
	t.stats.grow(spec)
	t.promises.grow(spec)
	t.content.grow(spec)
	t.promises.request++ // the engine ignores a plan that is under way
}

// Outcome takes the end of a query.
func (t *Telemetry) Outcome(o report.Outcome) {
	t.log.Lock()
	defer t.log.Unlock()
	t.metrics.outcome(&o)
	t.stats.outcome(&o)
	t.promises.outcome(&o)
}

// Metrics returns a handler for the formats of Prometheus.
func (t *Telemetry) Metrics() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{
		Registry: t.registry, MaxRequestsInFlight: 8, Timeout: 10 * time.Second, EnableOpenMetrics: true,
	})
}

// Gatherer has the series of Metrics, for programs that show those of several engines together.
func (t *Telemetry) Gatherer() prometheus.Gatherer { return t.registry }
