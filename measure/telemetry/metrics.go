package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/measure/report"
	"github.com/sluice-serving/sluice/serving"
)

// late is the index of answers after their deadline. They are counted apart from served ones, so that queries need no
// subtraction.
const late = serving.Outcomes

// metrics holds the Prometheus series. Children are resolved once, so that a query costs no look-up by name.
type metrics struct {
	spec *serving.Spec
	apps []appMetrics
	byV  []variantMetrics
	*vectors
	traceID  func(serving.QueryID) string // nil without traces
	accuracy *prometheus.GaugeVec

	batches   *prometheus.CounterVec
	failures  *prometheus.CounterVec // of plans
	limited   *prometheus.GaugeVec   // batch limits for lack of memory
	reasons   map[reasonKey]prometheus.Counter
	instances *prometheus.GaugeVec
	state     map[serving.InstanceID]instanceState
	running   map[serving.BatchID]runningBatch
}

type appMetrics struct {
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
	latency, queue, items prometheus.Observer
	nv                    nvMetrics                            // of the variant's model
	nvFailure             [serving.Outcomes]prometheus.Counter // of a composed app's: queries that ended there
}

type reasonKey struct {
	variant serving.VariantID
	reason  engine.Reason
}

type instanceState struct {
	app   int
	ready bool
	kept  bool
}

type runningBatch struct {
	instance serving.InstanceID
	variant  serving.VariantID
	items    int32
	queries  int32
}

// vectors are the series with labels of apps and variants.
type vectors struct {
	latency, queue, items                                     *prometheus.HistogramVec
	outcomes, tenants, good, all, accuracySum, accuracyCount  *prometheus.CounterVec
	nvSuccess, nvFailure, nvCount, nvExec, nvRequest, nvQueue *prometheus.CounterVec
	nvComputed, nvComputeInput, nvComputeOutput               *prometheus.CounterVec
	pending, nvPending                                        *prometheus.GaugeVec
}

// registry registers series as it makes them.
type registry struct{ *prometheus.Registry }

func (r registry) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	r.MustRegister(h)
	return h
}

func (r registry) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	r.MustRegister(c)
	return c
}

func (r registry) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	r.MustRegister(g)
	return g
}

func newMetrics(prom *prometheus.Registry, spec *serving.Spec, buckets []float64) *metrics {
	r := registry{prom}
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m := &metrics{
		vectors: newVectors(r, buckets),
		reasons: make(map[reasonKey]prometheus.Counter), state: make(map[serving.InstanceID]instanceState),
		running: make(map[serving.BatchID]runningBatch),
		batches: r.counter("sluice_batches_total", "Started batches, by the reason why they started.", "app", "variant",
			"reason"),
		failures: r.counter("sluice_plan_failures_total",
			"Requests for a plan that none came of, by reason; the plan in force stays.", "reason"),
		limited: r.gauge("sluice_batch_memory_limit", "Items that batches of a variant have at most on a device type, "+
			"because it lacked memory for a larger one.", "app", "variant", "device_type"),
		accuracy: r.gauge("sluice_variant_accuracy", "Accuracy of a variant: as plans believe it, as its profile "+
			"measured it, and as shadow queries estimate it.", "app", "variant", "source"),
		instances: r.gauge("sluice_instances", "Instances, by state.", "app", "state"),
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

// grow adds the series of new apps and variants.
func (m *metrics) grow(spec *serving.Spec) {
	m.spec = spec
	for a := len(m.apps); a < len(spec.Apps); a++ {
		m.apps = append(m.apps, m.appMetrics(&spec.Apps[a]))
	}
	for id := len(m.byV); id < len(spec.Variants); id++ {
		m.byV = append(m.byV, m.variantMetrics(serving.VariantID(id)))
	}
}

func (m *metrics) appMetrics(a *serving.App) appMetrics {
	app, model := a.Name, a.ClientName()
	last := m.spec.Stages[a.Stages[len(a.Stages)-1]].Variants
	version := m.spec.ClientVersion(last[len(last)-1]) // of queries that no version has answered
	x := appMetrics{
		nv:   m.nvMetrics(model, version),
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

func (m *metrics) variantMetrics(id serving.VariantID) variantMetrics {
	v := m.spec.Variants[id]
	a := &m.spec.Apps[m.spec.Stages[v.Stage].App]
	app := a.Name
	model, version := a.ClientName(), m.spec.ClientVersion(id)
	out := variantMetrics{
		latency: m.latency.WithLabelValues(app, v.Name), queue: m.queue.WithLabelValues(app, v.Name),
		items: m.items.WithLabelValues(app, v.Name),
	}
	if a.Composed() {
		if model, version = v.Name, v.Version; version == "" {
			version = "1"
		}
		for o := range serving.Outcomes {
			if serving.Outcome(o) != serving.Served {
				out.nvFailure[o] = m.nvFailure.WithLabelValues(model, version, triton(serving.Outcome(o)))
			}
		}
	}
	out.nv = m.nvMetrics(model, version)
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

func (m *metrics) observe(in []engine.Input, out []engine.Decision) {
	for k := range in {
		switch x := &in[k]; x.Kind {
		case engine.QueryArrived:
			if a := x.Query.App; a >= 0 && int(a) < len(m.apps) {
				m.apps[a].pending.Inc()
				m.apps[a].nvPending.Inc()
			}
		case engine.BatchDone:
			if b, ok := m.running[x.Batch]; ok {
				m.member(b, x)
				m.byV[b.variant].nv.computed.Add(float64(x.Took.Microseconds()))
				delete(m.running, x.Batch)
			}
		case engine.InstanceChanged:
			if s, ok := m.state[x.Instance]; ok && x.Change == engine.VariantReady && !s.ready {
				m.move(s, -1)
				s.ready = true
				m.state[x.Instance] = s
				m.move(s, 1)
			}
		}
	}
	for k := range out {
		d := &out[k]
		switch d.Kind {
		case engine.StartBatch:
			m.byV[d.Variant].items.Observe(float64(d.Items))
			m.byV[d.Variant].nv.exec.Inc()
			m.reason(d).Inc()
			m.running[d.Batch] = runningBatch{d.Instance, d.Variant, d.Items, int32(len(d.Tasks))}
		case engine.LaunchInstance:
			s := instanceState{app: int(m.spec.Stages[d.Launch.Stage].App)}
			m.state[d.Instance] = s
			m.move(s, 1)
		case engine.KeepInstance, engine.ResumeInstance:
			if s, ok := m.state[d.Instance]; ok {
				m.move(s, -1)
				s.kept = d.Kind == engine.KeepInstance
				m.state[d.Instance] = s
				m.move(s, 1)
			}
		case engine.StopInstance:
			if s, ok := m.state[d.Instance]; ok {
				m.move(s, -1)
				delete(m.state, d.Instance)
			}
			forget(m.running, d.Instance)
		case engine.LimitBatch:
			v := &m.spec.Variants[d.Variant]
			m.limited.WithLabelValues(m.spec.Apps[m.spec.Stages[v.Stage].App].Name, v.Name,
				m.spec.DeviceTypes[d.DeviceType].Name).Set(float64(d.Items))
		case engine.KeepPlan:
			m.failures.WithLabelValues(d.Reason.String()).Inc()
		}
	}
}

// forget removes the batches of an instance that is gone, as they never report an end.
func forget(running map[serving.BatchID]runningBatch, i serving.InstanceID) {
	for id, b := range running {
		if b.instance == i {
			delete(running, id)
		}
	}
}

func (m *metrics) move(s instanceState, by float64) {
	state := "launching"
	if s.kept {
		state = "kept"
	} else if s.ready {
		state = "ready"
	}
	m.instances.WithLabelValues(m.spec.Apps[s.app].Name, state).Add(by)
}

func (m *metrics) reason(d *engine.Decision) prometheus.Counter {
	k := reasonKey{d.Variant, d.Reason}
	c := m.reasons[k]
	if c == nil {
		v := &m.spec.Variants[d.Variant]
		c = m.batches.WithLabelValues(m.spec.Apps[m.spec.Stages[v.Stage].App].Name, v.Name, d.Reason.String())
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
	m.tenants.WithLabelValues(m.spec.Apps[o.App].Name, m.spec.Tenants[o.Tenant-1].Name, outcome).Inc()
}

func (m *metrics) outcome(o *report.Outcome) {
	if o.App < 0 || int(o.App) >= len(m.apps) {
		return
	}
	a := &m.apps[o.App]
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
	v := &m.byV[o.Variant]
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
