package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
)

// late is the index of answers after their deadline. They are counted apart from served ones, so that queries need no
// subtraction.
const late = serving.Outcomes

// metrics holds the Prometheus series. Children are resolved once, so that a query costs no look-up by name. They come
// with the first query of an app, and with the first batch of a variant, and go when it is closed.
type metrics struct {
	spec     *serving.Spec
	names    *names
	labelled labelled
	apps     []*appMetrics     // by AppID; nil before the first query
	byV      []*variantMetrics // by VariantID; nil before the first batch
	*vectors
	traceID func(serving.QueryID) string // nil without traces

	batches   *prometheus.CounterVec
	failures  *prometheus.CounterVec // of plans
	sure      *prometheus.CounterVec
	doubted   *prometheus.GaugeVec
	panics    *prometheus.CounterVec
	limited   *prometheus.GaugeVec // batch limits for lack of memory
	reasons   map[reasonKey]prometheus.Counter
	instances *instanceCounts
}

type appMetrics struct {
	of, label     label // label is of or Other
	open          int   // queries that have not ended
	outcomes      [serving.Outcomes + 1]prometheus.Counter
	good, all     prometheus.Counter
	accuracySum   prometheus.Counter
	accuracyCount prometheus.Counter
	pending       prometheus.Gauge
	nvPending     prometheus.Gauge
	nv            nvMetrics // of the app as a model
	nvFailure     [serving.Outcomes]prometheus.Counter
}

type variantMetrics struct {
	of, label             label // label is of or Other
	latency, queue, items prometheus.Observer
	nv                    nvMetrics                            // of the variant's model
	nvFailure             [serving.Outcomes]prometheus.Counter // of a composed app's: queries that ended there
}

type reasonKey struct {
	variant serving.VariantID
	reason  engine.Reason
}

// vectors are the series with labels of apps and variants.
type vectors struct {
	latency, queue, items, length                             *prometheus.HistogramVec
	outcomes, tenants, good, all, accuracySum, accuracyCount  *prometheus.CounterVec
	nvSuccess, nvFailure, nvCount, nvExec, nvRequest, nvQueue *prometheus.CounterVec
	nvComputed, nvComputeInput, nvComputeOutput               *prometheus.CounterVec
	pending, nvPending                                        *prometheus.GaugeVec
}

// registry registers series as it makes them.
type registry struct {
	*prometheus.Registry
	labelled labelled
}

// add registers a vector, for all that is dropped by its first label.
func (r registry) add(v interface {
	prometheus.Collector
	vector
}, labels []string) {
	r.MustRegister(v)
	if len(labels) > 0 {
		r.labelled[labels[0]] = append(r.labelled[labels[0]], v)
	}
}

func (r registry) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	r.add(h, labels)
	return h
}

func (r registry) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	r.add(c, labels)
	return c
}

func (r registry) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	r.add(g, labels)
	return g
}

func newMetrics(r registry, spec *serving.Spec, buckets []float64, n *names) *metrics {
	m := &metrics{
		names: n, labelled: r.labelled, vectors: newVectors(r, buckets),
		reasons: make(map[reasonKey]prometheus.Counter),
		batches: r.counter("sluice_batches_total", "Started batches, by the reason why they started.", "app", "variant",
			"reason"),
		failures: r.counter("sluice_plan_failures_total",
			"Requests for a plan that none came of, by reason; the plan in force stays.", "reason"),
		panics: r.counter("sluice_panics_total",
			"Panics that did not end the process, by what has panicked; the log has "+
				"their stacks.", "what"),
		limited: r.gauge("sluice_batch_memory_limit", "Items that batches of a variant have at most on a device type, "+
			"because it lacked memory for a larger one.", "app", "variant", "device_type"),
		sure: r.counter("sluice_sure_answers_total",
			"Answers of variants that know how sure they are, or after them: final, better (a second answer), or "+
				"out-of-time (no better one in time).", "app", "variant", "answer"),
		doubted: r.gauge("sluice_confidence_doubted", "1 while a variant's confidences are not as they were measured, "+
			"so that all of its answers are final.", "app", "variant"),
		instances: newInstanceCounts(r, n.limit),
	}
	m.grow(spec)
	return m
}

func newVectors(r registry, buckets []float64) *vectors {
	return &vectors{
		latency: r.histogram("sluice_query_latency_seconds",
			"Time from acceptance to the answer, of answered queries.", buckets, "app", "variant"),
		queue: r.histogram("sluice_query_queue_seconds",
			"Time that answered queries waited before their last batch started.", buckets, "app", "variant"),
		items: r.histogram("sluice_batch_items", "Items of started batches.",
			[]float64{1, 2, 4, 8, 16, 32, 64, 128, 256}, "app", "variant"),
		length: r.histogram("sluice_query_length", "Lengths of queries where they are known, in the unit of the model.",
			prometheus.ExponentialBuckets(8, 2, 18), "app"),
		outcomes: r.counter("sluice_queries_total",
			"Queries that ended, by outcome; late ones were answered after their deadline.", "app", "outcome"),
		tenants: r.counter("sluice_tenant_queries_total", "Queries of a tenant that ended, as in sluice_queries_total.",
			"app", "tenant", "outcome"),
		good: r.counter("sluice_slo_good_total", "Queries answered by their deadline.", "app"),
		all: r.counter("sluice_slo_total", "Queries that count for the objective: all but cancelled ones.",
			"app"),
		accuracySum:   r.counter("sluice_accuracy_sum", "Sum of the profiled accuracy of answered queries.", "app"),
		accuracyCount: r.counter("sluice_accuracy_count", "Answered queries.", "app"),
		pending:       r.gauge("sluice_pending_queries", "Accepted queries that have not ended.", "app"),
		nvSuccess: r.counter("nv_inference_request_success", "Number of successful inference requests.", "model",
			"version"),
		nvFailure: r.counter("nv_inference_request_failure", "Number of failed inference requests.", "model",
			"version", "reason"),
		nvCount: r.counter("nv_inference_count", "Number of inferences performed: items of answered queries.", "model",
			"version"),
		nvExec: r.counter("nv_inference_exec_count", "Number of model executions: batches.", "model", "version"),
		nvRequest: r.counter("nv_inference_request_duration_us", "Cumulative request duration in microseconds.",
			"model", "version"),
		nvQueue: r.counter("nv_inference_queue_duration_us", "Cumulative queuing duration in microseconds.", "model",
			"version"),
		nvComputed: r.counter("nv_inference_compute_infer_duration_us",
			"Cumulative run time of batches in microseconds.", "model", "version"),
		nvComputeInput: r.counter("nv_inference_compute_input_duration_us",
			"Always 0: copying inputs is part of the run time of batches.", "model", "version"),
		nvComputeOutput: r.counter("nv_inference_compute_output_duration_us",
			"Always 0: copying outputs is part of the run time of batches.", "model", "version"),
		nvPending: r.gauge("nv_inference_pending_request_count", "Requests that wait or run.", "model"),
	}
}

// grow makes room for new apps and variants, and drops the series of those that are gone.
func (m *metrics) grow(spec *serving.Spec) {
	m.spec = spec
	m.apps = append(m.apps, make([]*appMetrics, len(spec.Apps)-len(m.apps))...)
	m.byV = append(m.byV, make([]*variantMetrics, len(spec.Variants)-len(m.byV))...)
	m.instances.grow(spec)
	var open map[label]bool // found when something is gone
	stays := func(x label) bool {
		if open == nil {
			open = openLabels(spec)
		}
		return open[x]
	}
	for v, x := range m.byV {
		if x == nil {
			continue
		}
		is := &spec.Variants[v]
		app := spec.Stages[is.Stage].App
		if is.Retired || spec.Apps[app].Closed || labelsOf(spec, app, serving.VariantID(v)) != x.of {
			m.byV[v] = nil
			m.dropVariant(serving.VariantID(v), x.label, stays)
		}
	}
	for a, x := range m.apps {
		if x != nil && x.open == 0 &&
			(spec.Apps[a].Closed || labelsOf(spec, serving.AppID(a), serving.None) != x.of) {
			m.apps[a] = nil
			m.dropApp(x.label, stays)
		}
	}
}

// dropVariant deletes the series of a variant, but those that another one with its names goes on with.
func (m *metrics) dropVariant(v serving.VariantID, x label, stays func(label) bool) {
	for k := range m.reasons {
		if k.variant == v {
			delete(m.reasons, k)
		}
	}
	if x.app == Other {
		return
	}
	if !stays(label{app: x.app, variant: x.variant}) {
		m.labelled.delete("app", x.app, "variant", x.variant)
	}
	if !stays(label{model: x.model, version: x.version}) {
		m.labelled.delete("model", x.model, "version", x.version)
	}
}

// dropApp is dropVariant for an app.
func (m *metrics) dropApp(x label, stays func(label) bool) {
	if x.app == Other {
		return
	}
	if !stays(label{app: x.app}) {
		m.labelled.delete("app", x.app)
		m.names.drop(x.app)
	}
	if !stays(label{model: x.model}) {
		m.labelled.delete("model", x.model)
	}
}

// app returns the series of an app.
func (m *metrics) app(a serving.AppID) *appMetrics {
	if m.apps[a] == nil {
		m.apps[a] = m.newApp(a)
	}
	return m.apps[a]
}

// variant returns the series of a variant.
func (m *metrics) variant(v serving.VariantID) *variantMetrics {
	if m.byV[v] == nil {
		m.byV[v] = m.newVariant(v)
	}
	return m.byV[v]
}

// labels returns what an app's variant is called, and what its series are; serving.None for those of the app.
func (m *metrics) labels(a serving.AppID, v serving.VariantID) (of, shown label) {
	of = labelsOf(m.spec, a, v)
	if !m.names.claim(of.app) {
		return of, label{Other, Other, Other, Other}
	}
	return of, of
}

func (m *metrics) newApp(id serving.AppID) *appMetrics {
	a := &m.spec.Apps[id]
	of, l := m.labels(id, serving.None)
	app, model, version := l.app, l.model, l.version
	x := &appMetrics{
		of: of, label: l, nv: m.nvMetrics(model, version),
		good: m.good.WithLabelValues(app), all: m.all.WithLabelValues(app),
		accuracySum: m.accuracySum.WithLabelValues(app), accuracyCount: m.accuracyCount.WithLabelValues(app),
		pending: m.pending.WithLabelValues(app), nvPending: m.nvPending.WithLabelValues(model),
	}
	for o := range serving.Outcomes {
		x.outcomes[o] = m.outcomes.WithLabelValues(app, serving.Outcome(o).String())
		if serving.Outcome(o) != serving.Served {
			x.nvFailure[o] = m.nvFailure.WithLabelValues(model, version, triton(serving.Outcome(o)))
		}
	}
	if other := m.nvFailure.WithLabelValues(model, version, "OTHER"); a.Composed() {
		// As in Triton: the reason is its member's.
		for o := range x.nvFailure {
			x.nvFailure[o] = other
		}
	}
	x.outcomes[late] = m.outcomes.WithLabelValues(app, "late")
	return x
}

func (m *metrics) newVariant(id serving.VariantID) *variantMetrics {
	app := m.spec.Stages[m.spec.Variants[id].Stage].App
	of, l := m.labels(app, id)
	out := &variantMetrics{
		of: of, label: l,
		latency: m.latency.WithLabelValues(l.app, l.variant), queue: m.queue.WithLabelValues(l.app, l.variant),
		items: m.items.WithLabelValues(l.app, l.variant), nv: m.nvMetrics(l.model, l.version),
	}
	if m.spec.Apps[app].Composed() {
		for o := range serving.Outcomes {
			if serving.Outcome(o) != serving.Served {
				out.nvFailure[o] = m.nvFailure.WithLabelValues(l.model, l.version, triton(serving.Outcome(o)))
			}
		}
	}
	return out
}

// triton returns the reason under which Triton counts a failure.
func triton(o serving.Outcome) string {
	switch o {
	case serving.Refused, serving.Dropped:
		return "REJECTED"
	case serving.Cancelled:
		return "CANCELED"
	case serving.Failed:
		return "BACKEND"
	}
	return "OTHER"
}

func (m *metrics) observe(s *steps.Step) {
	for k := range s.In {
		switch x := &s.In[k]; x.Kind {
		case engine.QueryArrived:
			if a := x.Query.App; a >= 0 && int(a) < len(m.apps) {
				of := m.app(a)
				of.open++
				of.pending.Inc()
				of.nvPending.Inc()
				if n := x.Query.Length; n > 0 {
					m.length.WithLabelValues(of.label.app).Observe(float64(n))
				}
			}
		case engine.BatchDone:
			if b := s.Ended(k); b != nil {
				m.member(b)
				m.variant(b.Variant).nv.computed.Add(float64(x.Took.Microseconds()))
			}
		case engine.InstanceChanged:
			if x.Change == engine.VariantReady {
				m.instances.ready(x.Instance)
			}
		}
	}
	for k := range s.Out {
		d := &s.Out[k]
		switch d.Kind {
		case engine.StartBatch:
			v := m.variant(d.Variant)
			v.items.Observe(float64(d.Items))
			v.nv.exec.Inc()
			m.reason(d).Inc()
		case engine.LaunchInstance:
			m.instances.launched(d.Instance, m.spec.Stages[d.Launch.Stage].App)
		case engine.KeepInstance, engine.ResumeInstance:
			m.instances.keep(d.Instance, d.Kind == engine.KeepInstance)
		case engine.StopInstance:
			m.instances.stopped(d.Instance)
		case engine.LimitBatch:
			if l := m.variant(d.Variant).label; l.app != Other { // limits cannot be added up
				m.limited.WithLabelValues(l.app, l.variant, m.spec.DeviceTypes[d.DeviceType].Name).Set(float64(d.Items))
			}
		case engine.EndQuery:
			if d.Calibrated {
				answer, l := "final", m.variant(d.Variant).label
				if d.Second {
					answer = "better"
				} else if d.Reason == engine.OutOfTime {
					answer = "out-of-time"
				}
				m.sure.WithLabelValues(l.app, l.variant, answer).Inc()
			}
		case engine.DoubtConfidence:
			is := 0.0
			if d.Reason == engine.InputsDiffer {
				is = 1
			}
			l := m.variant(d.Variant).label
			m.doubted.WithLabelValues(l.app, l.variant).Set(is)
		case engine.KeepPlan:
			m.failures.WithLabelValues(d.Reason.String()).Inc()
		}
	}
}

func (m *metrics) reason(d *engine.Decision) prometheus.Counter {
	k := reasonKey{d.Variant, d.Reason}
	c := m.reasons[k]
	if c == nil {
		l := &m.variant(d.Variant).label
		c = m.batches.WithLabelValues(l.app, l.variant, d.Reason.String())
		m.reasons[k] = c
	}
	return c
}

// ofTenant counts a query for its tenant, where there are tenants.
func (m *metrics) ofTenant(o *report.Outcome, kind int) {
	if o.Tenant <= 0 || int(o.Tenant) > len(m.spec.Tenants) {
		return
	}
	outcome := "late"
	if kind != late {
		outcome = serving.Outcome(kind).String()
	}
	m.tenants.WithLabelValues(m.app(o.App).label.app, m.spec.Tenants[o.Tenant-1].Name, outcome).Inc()
}

func (m *metrics) outcome(o *report.Outcome) {
	if o.App < 0 || int(o.App) >= len(m.apps) {
		return
	}
	a := m.app(o.App)
	a.open--
	a.pending.Dec()
	a.nvPending.Dec()
	kind := int(o.Outcome)
	if o.Late() {
		kind = late
	}
	a.outcomes[kind].Inc()
	m.ofTenant(o, kind)
	if o.Outcome != serving.Cancelled {
		a.all.Inc()
	}
	if o.Outcome != serving.Served {
		a.nvFailure[o.Outcome].Inc()
		m.memberFailed(o)
		return
	}
	if kind != late {
		a.good.Inc()
	}
	a.accuracySum.Add(o.Accuracy)
	a.accuracyCount.Inc()
	v := m.variant(o.Variant)
	took := o.Done.Sub(o.Arrived)
	m.observeLatency(v.latency, o.Query, took.Seconds())
	v.queue.Observe(o.Queue.Seconds())
	nv := &v.nv
	if m.spec.Apps[o.App].Composed() {
		nv = &a.nv
		nv.exec.Inc()
	}
	nv.success.Inc()
	nv.count.Add(float64(o.Items))
	nv.request.Add(float64(took.Microseconds()))
	nv.queue.Add(float64(o.Queue.Microseconds()))
}

// observeLatency adds a latency, with the query's trace as an exemplar where it has one.
func (m *metrics) observeLatency(to prometheus.Observer, id serving.QueryID, seconds float64) {
	if m.traceID != nil {
		if trace := m.traceID(id); trace != "" {
			to.(prometheus.ExemplarObserver).ObserveWithExemplar(seconds, prometheus.Labels{"trace_id": trace})
			return
		}
	}
	to.Observe(seconds)
}
