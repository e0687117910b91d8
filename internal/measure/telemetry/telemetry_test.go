package telemetry

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim"
	"github.com/sluice-serving/sluice/sim/truth"
)

// value returns the value of a counter or gauge.
func value(m prometheus.Metric) float64 {
	var d dto.Metric
	if err := m.Write(&d); err != nil {
		panic(err)
	}
	return d.GetCounter().GetValue() + d.GetGauge().GetValue()
}

// viewing is a Telemetry with a log of its own.
func viewing(spec *serving.Spec, o Options) *Telemetry {
	return New(spec, steps.New(spec, steps.Options{}), o)
}

// watched runs an overloaded simulation with a telemetry and a recorder, of an app as edited.
func watched(t *testing.T, system string, edit ...func(*serving.App)) (*Telemetry, *report.Report) {
	t.Helper()
	c := simtest.Uniform(2, 4*time.Millisecond, time.Millisecond, 30*time.Millisecond, 8)
	c.Spec.Apps[0].QueueLimit = 20
	for _, f := range edit {
		f(&c.Spec.Apps[0])
	}
	s, err := systems.Named(system)
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Engine(c.Spec, c.Profile, c.Planner.Provides())
	if err != nil {
		t.Fatal(err)
	}
	tr, err := truth.NewTable(c.Spec, c.Measurements, truth.Exponential, workload.Rand(1, "service"))
	if err != nil {
		t.Fatal(err)
	}
	w := workload.Spec{
		Seed: 1, DurationS: 2, Apps: []workload.AppSpec{{App: "app", Rate: 1500, Process: "gamma", Shape: 0.3}},
	}
	src, err := w.Source(func(string) (serving.AppID, error) { return 0, nil })
	if err != nil {
		t.Fatal(err)
	}
	telemetry := viewing(c.Spec, Options{})
	rec := report.NewRecorder([]report.AppInfo{{Name: "app", BestAccuracy: 0.9}}, report.Options{})
	if _, err := sim.Run(sim.Config{Spec: c.Spec, Engine: e, Truth: tr, Source: src, Initial: c.Plan, Recorder: rec,
		Breaks: func(id serving.BatchID) bool { return id >= 7 && id <= 16 },
		Observe: func(now serving.Time, in []engine.Input, d []engine.Decision) {
			telemetry.log.Observe(now, in, d)
			for k := range d {
				if d[k].Kind == engine.EndQuery {
					telemetry.Outcome(d[k].Ended(now))
				}
			}
		}}); err != nil {
		t.Fatal(err)
	}
	return telemetry, rec.Report(report.Meta{})
}

// Metrics, statistics and report count the same run, so they agree in every query.
func TestMetricsAgreeWithTheReport(t *testing.T) {
	telemetry, r := watched(t, "earliestfinish+mostaccurate")
	o := r.Overall
	if o.Dropped+o.Refused == 0 || o.Served == 0 || o.Late == 0 {
		t.Fatalf("the run is too tame to tell anything: %+v", o)
	}
	a := telemetry.metrics.apps[0]
	for name, x := range map[string]struct {
		got  float64
		want int64
	}{
		"served in time": {value(a.outcomes[serving.Served]), o.InTime}, "late": {value(a.outcomes[late]), o.Late},
		"dropped": {value(a.outcomes[serving.Dropped]), o.Dropped}, "refused": {
			value(a.outcomes[serving.Refused]), o.Refused,
		},
		"failed": {value(a.outcomes[serving.Failed]), o.Failed}, "good": {value(a.good), o.InTime},
		"all":            {value(a.all), o.Offered},
		"accuracy count": {value(a.accuracyCount), o.Served}, "pending at the end": {value(a.pending), 0},
		"nv success": {value(telemetry.metrics.byV[0].nv.success), o.Served},
	} {
		if x.got != float64(x.want) {
			t.Errorf("%s: %v, the report says %d", name, x.got, x.want)
		}
	}
	s := telemetry.Statistics(0)[0]
	if o.Failed == 0 || s.Fail != uint64(o.Failed+o.Dropped+o.Refused) {
		t.Errorf("statistics count %d failures, the report %d", s.Fail, o.Failed)
	}
	if s.Success != uint64(o.Served) || s.InferenceCount != uint64(o.Served) {
		t.Errorf("statistics: %+v, the report says %d served", s, o.Served)
	}
	var batches, items uint64
	for _, b := range s.Batches {
		batches += b.Count
		items += b.Count * b.Size
	}
	if batches != s.ExecutionCount || items < s.InferenceCount {
		t.Errorf("batches by size: %d batches, %d items; %d executions, %d items served", batches, items,
			s.ExecutionCount, s.InferenceCount)
	}
	rec := httptest.NewRecorder()
	telemetry.Metrics().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`sluice_queries_total{app="app",outcome="late"}`,
		`sluice_query_latency_seconds_bucket{app="app",variant="model",le="0.05"}`,
		`nv_inference_exec_count{model="app",version="1"}`,
		`sluice_batches_total{app="app",reason="instance free",variant="model"}`,
		`sluice_instances{app="app",state="ready"} 2`,
	} {
		if !strings.Contains(rec.Body.String(), want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}

// BenchmarkObserve measures the cost of observing a query, at the usual size of batches.
func BenchmarkObserve(b *testing.B) {
	c := simtest.Uniform(1, time.Millisecond, time.Millisecond, time.Second, 32)
	telemetry := viewing(c.Spec, Options{})
	parts := make([]engine.Task, 8)
	in := make([]engine.Input, 0, 9)
	out := make([]engine.Decision, 0, 9)
	b.ReportAllocs()
	for n := 0; n < b.N; n += 8 {
		in, out = in[:0], out[:0]
		if n > 0 {
			in = append(in, engine.Input{
				Kind: engine.BatchDone, Batch: serving.BatchID(n), Instance: 1, Took: time.Millisecond,
			})
		}
		for k := range parts {
			id := serving.QueryID(n + k + 1)
			parts[k] = engine.Task{Query: id, Items: 1}
			in = append(in, engine.Input{
				Kind: engine.QueryArrived, Query: serving.Query{ID: id, Deadline: 1e9, Items: 1, Variant: serving.None},
			})
			d := engine.Decision{Kind: engine.EndQuery, Query: id, Items: 8, Batch: serving.BatchID(n)}
			out = append(out, d)
			telemetry.Outcome(d.Ended(5))
		}
		out = append(out, engine.Decision{
			Kind: engine.StartBatch, Batch: serving.BatchID(n + 8), Instance: 1, Items: 8, Tasks: parts,
		})
		telemetry.log.Observe(serving.Time(n), in, out)
	}
}

// Requests that no plan comes of are counted by reason.
func TestPlanFailures(t *testing.T) {
	telemetry := viewing(simtest.Uniform(1, 1e6, 1e6, 1e9, 8).Spec, Options{})
	out := []engine.Decision{
		{Kind: engine.KeepPlan, Reason: engine.PlanningFailed, Failure: &engine.PlanFailure{Seq: 3, Err: "no room"}},
		{Kind: engine.KeepPlan, Reason: engine.PlanningFailed, Failure: &engine.PlanFailure{Seq: 4, Err: "no room"}},
		{Kind: engine.KeepPlan, Reason: engine.PlanInvalid, Failure: &engine.PlanFailure{Seq: 5, Err: "0 slots"}},
	}
	telemetry.log.Observe(1e9, nil, out)
	for why, want := range map[engine.Reason]float64{engine.PlanningFailed: 2, engine.PlanInvalid: 1} {
		if got := value(telemetry.metrics.failures.WithLabelValues(why.String())); got != want {
			t.Errorf("%q is counted %v times, want %v", why, got, want)
		}
	}
}
