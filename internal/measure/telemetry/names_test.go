package telemetry

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
)

// many is a spec of n apps of one variant.
func many(n int) *serving.Spec {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d"}}, Workers: []serving.Worker{{Name: "w"}},
		Tenants: []serving.Tenant{{Name: "t", Weight: 1}},
	}
	for k := range n {
		spec.Apps = append(spec.Apps, serving.App{
			Name: fmt.Sprintf("app%d", k), SLO: serving.SLO{Latency: time.Second, Percentile: 99}, Weight: 1,
			QueueLimit: 10, Stages: []serving.StageID{serving.StageID(k)},
		})
		spec.Stages = append(spec.Stages, serving.Stage{
			Name: "s", App: serving.AppID(k), Variants: []serving.VariantID{serving.VariantID(k)},
		})
		spec.Variants = append(spec.Variants, serving.Variant{
			Name: fmt.Sprintf("v%d", k), Accuracy: 1, MaxBatch: 4, Stage: serving.StageID(k),
		})
	}
	return spec
}

// page is what /metrics says of apps, variants and models: the lines that have a label.
func page(t *Telemetry) (out []string) {
	rec := httptest.NewRecorder()
	t.Metrics().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(rec.Body.String()) {
		if strings.Contains(line, `app="`) || strings.Contains(line, `model="`) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// serve has an app answer a query of a tenant in a batch of its own.
func serve(t *Telemetry, a serving.AppID, id serving.QueryID) {
	v := serving.VariantID(a)
	query := serving.Query{ID: id, App: a, Items: 2, Length: 100}
	t.log.Observe(0, []engine.Input{engine.NewQueryArrived(query)}, []engine.Decision{
		{Kind: engine.StartBatch, Batch: serving.BatchID(id), Variant: v, Items: 2, Tasks: []engine.Task{{Query: id}}},
	})
	t.log.Observe(1, []engine.Input{{Kind: engine.BatchDone, Batch: serving.BatchID(id), Took: time.Millisecond}}, nil)
	t.Outcome(report.Outcome{
		Query: id, App: a, Variant: v, Items: 2, Tenant: 1, Done: 2, Deadline: 3, Accuracy: 1, Outcome: serving.Served,
	})
}

func count(lines []string, part string) (n int) {
	for _, line := range lines {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// Models that nobody has called are not in the metrics, but for their instances.
func TestSeriesComeWithTheFirstQuery(t *testing.T) {
	told := viewing(many(1000), Options{})
	for v := range 1000 {
		told.ShowAccuracy(fmt.Sprintf("app%d", v), fmt.Sprintf("v%d", v), "believed", 1)
	}
	told.log.Observe(0, nil, nil)
	if lines := page(told); len(lines) > 0 {
		t.Errorf("%d lines of models that nobody called, the first is %s", len(lines), lines[0])
	}
	serve(told, 7, 1)
	told.log.Observe(serving.Time(2*showEvery), nil, nil)
	lines := page(told)
	if len(lines) == 0 || count(lines, `"app7"`) != len(lines) {
		t.Errorf("of %d lines %d are of the app that was called", len(lines), count(lines, `"app7"`))
	}
	for _, want := range []string{
		`sluice_queries_total{app="app7",outcome="served"} 1`, `sluice_pending_queries{app="app7"} 0`,
		`sluice_variant_accuracy{app="app7",source="believed",variant="v7"} 1`,
		`nv_inference_request_success{model="app7",version="1"} 1`, `sluice_ballooning_factor{app="app7",stage="s"} 1`,
		`sluice_tenant_queries_total{app="app7",outcome="served",tenant="t"} 1`,
		`sluice_query_length_bucket{app="app7",le="64"} 0`, `sluice_query_length_bucket{app="app7",le="128"} 1`,
	} {
		if count(lines, want) != 1 {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}

// Apps beyond the bound are counted together: no query is lost, and the size of the page stays. That is told once.
func TestSeriesAreBounded(t *testing.T) {
	var told []string
	x := viewing(many(50), Options{Apps: 10, AppsFull: func(app string) { told = append(told, app) }})
	x.CountCallers(func() (c Callers) {
		for a := range 50 {
			c.Times = append(c.Times, TenantTime{App: fmt.Sprintf("app%d", a), Tenant: "t", Used: time.Second})
		}
		return c
	})
	x.ShowFailedModels(func() (out []FailedModel) {
		for k := range 25 {
			out = append(out, FailedModel{Model: fmt.Sprintf("m%d", k), Version: "1", Kind: "runtime"})
		}
		return out
	})
	for a := range serving.AppID(50) {
		x.log.Observe(0, nil, []engine.Decision{{
			Kind: engine.LaunchInstance, Instance: serving.InstanceID(a + 1),
			Launch: &engine.Launch{Stage: serving.StageID(a)},
		}})
		serve(x, a, serving.QueryID(3*a+1))
		if a%2 == 0 {
			serve(x, a, serving.QueryID(3*a+2))
		}
		if a == 10 {
			if len(told) != 1 || told[0] != "app10" {
				t.Errorf("told of %v", told)
			}
		}
	}
	lines := page(x)
	for _, want := range []string{
		`sluice_queries_total{app="app9",outcome="served"} 1`,
		`sluice_queries_total{app="(other)",outcome="served"} 60`,
		`sluice_tenant_queries_total{app="(other)",outcome="served",tenant="t"} 60`,
		`sluice_query_latency_seconds_count{app="(other)",variant="(other)"} 60`,
		`sluice_pending_queries{app="(other)"} 0`, `sluice_instances{app="(other)",state="launching"} 40`,
		`nv_inference_count{model="(other)",version="(other)"} 120`,
		`sluice_tenant_machine_seconds_total{app="(other)",tenant="t"} 40`,
		`sluice_model_load_failed{model="(other)",reason="runtime",version="(other)"} 15`,
	} {
		if count(lines, want) != 1 {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	if n := count(lines, `"app10"`) + count(lines, `"v10"`); n > 0 || len(told) != 1 {
		t.Errorf("%d lines of an app beyond the bound; told %v", n, told)
	}
}

// The series of an app that is closed for good go, once its last query has ended and its last instance has stopped, and
// make room. Another app of its name goes on with them.
func TestSeriesGoWithTheirApp(t *testing.T) {
	spec := many(3)
	spec.Apps[2].Name, spec.Variants[2].Name = spec.Apps[0].Name, "v0 anew"
	x := viewing(spec, Options{Apps: 2})
	launch := func(a int) {
		x.log.Observe(0, nil, []engine.Decision{{
			Kind: engine.LaunchInstance, Instance: serving.InstanceID(a + 1),
			Launch: &engine.Launch{Stage: serving.StageID(a)},
		}})
	}
	for a := range 3 {
		launch(a)
		serve(x, serving.AppID(a), serving.QueryID(a+1))
	}
	grow := func(a serving.AppID) {
		spec = spec.WithClosed(a)
		x.log.Observe(2, []engine.Input{engine.NewSpecGrown(&engine.Growth{Spec: spec})}, nil)
	}
	x.log.Observe(1, []engine.Input{engine.NewQueryArrived(serving.Query{ID: 9, App: 1, Items: 1})}, nil)
	grow(1)
	if n := count(page(x), `sluice_pending_queries{app="app1"} 1`); n != 1 {
		t.Error("a query that is under way is not counted any more")
	}
	x.Outcome(report.Outcome{Query: 9, App: 1, Variant: serving.None, Outcome: serving.Dropped, Stage: serving.None})
	x.log.Observe(1, nil, []engine.Decision{{Kind: engine.StopInstance, Instance: 2}})
	grow(1)
	if lines := page(x); count(lines, `"app1"`) > 0 {
		t.Errorf("%d lines of an app that is gone, such as %s", count(lines, `"app1"`), lines[0])
	}
	grow(0)
	lines := page(x)
	if count(lines, `variant="v0"`) > 0 || count(lines, `sluice_queries_total{app="app0",outcome="served"} 2`) != 1 ||
		count(lines, `sluice_batch_items_count{app="app0",variant="v0 anew"} 1`) != 1 {
		t.Errorf("after the first app of two with one name has gone:\n%s", strings.Join(lines, "\n"))
	}
	for _, i := range []serving.InstanceID{1, 3} {
		x.log.Observe(1, nil, []engine.Decision{{Kind: engine.StopInstance, Instance: i}})
	}
	grow(2)
	if lines := page(x); len(lines) > 0 {
		t.Errorf("%d lines with all apps gone, such as %s", len(lines), lines[0])
	}
	if !x.names.claim("another") || !x.names.claim("one more") {
		t.Error("they leave no room")
	}
}

// A place in the tables that is used again, for another version of a model or for another model, has the series of
// what is there now.
func TestSeriesOfAPlaceThatIsUsedAgain(t *testing.T) {
	spec := many(2)
	spec.Variants[0].Version = "1"
	x := viewing(spec, Options{})
	next := func(change func(*serving.Spec)) {
		s := *spec
		s.Apps, s.Variants = slices.Clone(s.Apps), slices.Clone(s.Variants)
		change(&s)
		spec = &s
		x.log.Observe(2, []engine.Input{engine.NewSpecGrown(&engine.Growth{Spec: spec})}, nil)
	}
	serve(x, 0, 1)
	next(func(s *serving.Spec) { s.Variants[0].Version = "7" })
	serve(x, 0, 2)
	lines := page(x)
	for want, n := range map[string]int{
		`version="1"`: 0, `nv_inference_request_success{model="app0",version="7"} 1`: 1,
		`sluice_queries_total{app="app0",outcome="served"} 2`: 1,
	} {
		if got := count(lines, want); got != n {
			t.Errorf("another version: %d lines with %s, want %d", got, want, n)
		}
	}
	next(func(s *serving.Spec) { s.Apps[0].Name, s.Variants[0].Name = "new", "new" })
	serve(x, 0, 3)
	lines = page(x)
	if count(lines, `"app0"`) > 0 || count(lines, `sluice_queries_total{app="new",outcome="served"} 1`) != 1 {
		t.Errorf("another model:\n%s", strings.Join(lines, "\n"))
	}
}
