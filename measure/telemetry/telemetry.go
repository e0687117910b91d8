// Package telemetry turns decisions into what people and machines watch: Prometheus metrics, a log of the latest
// decisions with their reasons, and explanations of single queries. It sees every step of an engine and changes
// nothing.
package telemetry

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/measure/report"
	"github.com/sluice-serving/sluice/serving"
)

// Options shape a Telemetry. Zero fields take the defaults.
type Options struct {
	// Decisions is how many of the latest decisions are kept; default 4096.
	Decisions int
	// Queries is how many of the latest queries can be explained; default 16384.
	Queries int
	// LatencyBuckets are the upper bounds of latency histograms in seconds, ascending; default 0.5 ms to 10 s.
	LatencyBuckets []float64
	// PromiseChanged is told, by the engine's owner, when what policies promise and what happens come to differ, and
	// when no longer; nil for nobody.
	PromiseChanged func(PromiseChange)
}

// Telemetry watches one engine. Observe and Outcome are called by the engine's owner; everything else by any goroutine.
type Telemetry struct {
	spec     atomic.Pointer[serving.Spec]
	registry *prometheus.Registry
	metrics  *metrics
	stats    *stats
	log      *log
	recent   *recentQueries
	promises *promises
	content  *complexity
}

// New returns a Telemetry with a registry of its own.
func New(spec *serving.Spec, o Options) *Telemetry {
	if o.Decisions <= 0 {
		o.Decisions = 4096
	}
	if o.Queries <= 0 {
		o.Queries = 16384
	}
	if len(o.LatencyBuckets) == 0 {
		o.LatencyBuckets = []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10}
	}
	t := &Telemetry{
		registry: prometheus.NewRegistry(), stats: newStats(spec), log: newLog(o.Decisions),
		recent: newRecentQueries(spec, o.Queries),
	}
	t.metrics = newMetrics(t.registry, spec, o.LatencyBuckets)
	t.promises = newPromises(t.registry, spec, o.PromiseChanged)
	t.content = newComplexity(t.registry, spec)
	t.spec.Store(spec)
	return t
}

// Observe takes a step. The slices are not kept.
func (t *Telemetry) Observe(now serving.Time, in []engine.Input, out []engine.Decision) {
	for k := range in {
		if in[k].Kind == engine.SpecGrown {
			t.grow(in[k].Growth.Spec)
		}
	}
	t.metrics.observe(in, out)
	t.stats.observe(in, out)
	t.log.observe(now, out)
	t.recent.observe(now, in, out)
	t.promises.observe(now, in, out)
	t.content.observe(now, in, out)
}

// grow takes up what a larger world adds.
func (t *Telemetry) grow(spec *serving.Spec) {
	t.metrics.grow(spec)
	t.stats.grow(spec)
	t.recent.grow(spec)
	t.promises.grow(spec)
	t.content.grow(spec)
	t.promises.request++ // the engine drops a plan that is on its way
	t.spec.Store(spec)
}

// Outcome takes the end of a query.
func (t *Telemetry) Outcome(o report.Outcome) {
	t.metrics.outcome(&o)
	t.stats.outcome(&o)
	t.promises.outcome(&o)
}

// Metrics serves Prometheus's formats.
func (t *Telemetry) Metrics() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{
		Registry: t.registry, MaxRequestsInFlight: 8, Timeout: 10 * time.Second, EnableOpenMetrics: true,
	})
}
