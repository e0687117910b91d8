package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/measure/board"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is an app on two workers.
func world() *serving.Spec {
	return &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "cpu", Cores: 2, PricePerHour: 3.6}},
		Workers:     []serving.Worker{{Name: "w0"}, {Name: "w1"}},
		Apps: []serving.App{{Name: "app", Weight: 1, Stages: []serving.StageID{0},
			SLO: serving.SLO{Latency: 100 * time.Millisecond, Percentile: 99}}},
		Stages:   []serving.Stage{{Name: "app", Variants: []serving.VariantID{0}}},
		Variants: []serving.Variant{{Name: "v", Accuracy: 0.9, MaxBatch: 4}},
	}
}

// busy is a board on which an instance of w1 has answered one query and runs a batch.
func busy() (*board.Board, *steps.Log) {
	log := steps.New(world(), steps.Options{})
	b := board.New(world(), log, board.Options{Arrivals: 8})
	launch := engine.Decision{Kind: engine.LaunchInstance, Instance: 1, Reason: engine.Planned,
		Launch: &engine.Launch{Stage: 0, Slots: 1, Variants: []serving.VariantID{0}}}
	launch.Launch.Key.Worker = 1
	log.Observe(0, []engine.Input{engine.NewPlanReady(&plan.Plan{Planner: "test"})}, []engine.Decision{launch})
	const ms = serving.Time(time.Millisecond)
	log.Observe(10*ms, []engine.Input{engine.NewVariantReady(1, 0)}, nil)
	query := func(id serving.QueryID, at serving.Time) engine.Input {
		return engine.NewQueryArrived(serving.Query{
			ID: id, Arrived: at, Deadline: at.Add(100 * time.Millisecond), Items: 1,
		})
	}
	start := func(batch serving.BatchID, id serving.QueryID) engine.Decision {
		return engine.Decision{Kind: engine.StartBatch, Batch: batch, Instance: 1, Items: 1,
			Expected: 20 * time.Millisecond, Tasks: []engine.Task{{Query: id, Items: 1}}}
	}
	log.Observe(20*ms, []engine.Input{query(1, 20*ms)}, []engine.Decision{start(1, 1)})
	log.Observe(45*ms, []engine.Input{engine.NewBatchDone(1, 1, 25*time.Millisecond, nil)},
		[]engine.Decision{{Kind: engine.EndQuery, Query: 1, Arrived: 20 * ms, Accuracy: 0.9}})
	log.Observe(50*ms, []engine.Input{query(2, 50*ms)}, []engine.Decision{start(2, 2)})
	return b, log
}

func get(t *testing.T, h http.Handler, path string, want int) map[string]any {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	var out map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != want {
		t.Fatalf("%s: %d %s, want %d", path, w.Code, w.Body, want)
	}
	return out
}

// Every path answers with its schema, and what is not there is refused with words that say what to do.
func TestPaths(t *testing.T) {
	b, _ := busy()
	h := New(Config{Board: b}).Handler()
	for _, path := range []string{"info", "overview", "machines", "plans", "plans/1", "apps/app", "series?app=app",
		"series?step=60", "queries?limit=3",
		"batches?workers=0,1&since=0.5"} {
		if x := get(t, h, Prefix+path, http.StatusOK); x["schema"] != float64(board.Schema) {
			t.Errorf("%s has schema %v", path, x["schema"])
		}
	}
	for path, want := range map[string]string{
		"apps/other": "/api/v1/overview", "plans/7": "/api/v1/plans", "such": "docs/dashboard.md",
		"series?app=other": "no app", "queries/1": "no record",
	} {
		if x := get(t, h, Prefix+path, http.StatusNotFound); !strings.Contains(x["error"].(string), want) {
			t.Errorf("%s: %v", path, x)
		}
	}
	for path, want := range map[string]string{
		"plans/x": "whole number", "series?from=x": "from must be", "queries?limit=0": "limit", "queries/0": "query_id",
		"batches?workers=x": "positions", "batches?workers=0&since=-1": "since must be",
	} {
		if x := get(t, h, Prefix+path, http.StatusBadRequest); !strings.Contains(x["error"].(string), want) {
			t.Errorf("%s: %v", path, x)
		}
	}
}

// What a worker holds and runs is what was decided.
func TestMachines(t *testing.T) {
	b, log := busy()
	var look board.Look
	m := b.Machines(&look)
	if len(m.States) != 2 || len(m.States[0].Instances) != 0 || len(m.States[1].Instances) != 1 {
		t.Fatalf("%+v", m.States)
	}
	i := m.States[1].Instances[0]
	if i.State != "ready" || i.Variants[0].Loading || len(i.Running) != 1 || i.Running[0].Batch != 2 {
		t.Errorf("%+v", i)
	}
	if d := b.Changed(&look, false); len(d.States) != 0 {
		t.Errorf("nothing has changed: %+v", d)
	}
	log.Observe(serving.Time(70*time.Millisecond),
		[]engine.Input{engine.NewBatchDone(2, 1, 20*time.Millisecond, nil)},
		[]engine.Decision{{Kind: engine.StopInstance, Instance: 1}})
	d := b.Changed(&look, false)
	if len(d.States) != 1 || d.States[0].Worker != 1 || len(d.States[0].Instances) != 0 {
		t.Errorf("after it was given back: %+v", d)
	}
	if o := b.Overview(); o.CostPerHour != 0 || o.WorkersUsed != 0 {
		t.Errorf("nothing is held, yet %+v", o)
	}
}

// A reader that does not read loses events, others get all, and the one that lost some is told so.
func TestSlowReader(t *testing.T) {
	b, _ := busy()
	d := New(Config{Board: b})
	slow := &reader{topics: map[string]bool{overviewTopic: true}, events: make(chan []byte, behind)}
	quick := &reader{topics: map[string]bool{overviewTopic: true}, events: make(chan []byte, behind)}
	d.hub.join(slow)
	d.hub.join(quick)
	for range 3 * behind {
		d.hub.send(overviewTopic, []byte("x"))
		<-quick.events
	}
	if lost, readers := d.Lost(); lost != 2*behind || readers != 2 {
		t.Errorf("%d events lost by %d readers, want %d by 2", lost, readers, 2*behind)
	}
	if d.hub.takeLost(quick) || !d.hub.takeLost(slow) || d.hub.takeLost(slow) {
		t.Error("who has lost events is not who was told")
	}
	if len(slow.events) != 0 {
		t.Error("old events are left for a reader that has to begin anew")
	}
}

// The stream begins with what is shown, goes on with its topics, and ends with its client; there are not too many.
func TestStream(t *testing.T) {
	b, _ := busy()
	d := New(Config{Board: b, Info: Info{Name: "n", Source: "live"},
		Clock: func() serving.Time { return serving.Time(time.Second) }})
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan struct{})
	go func() { d.Run(ctx); close(ran) }()
	s := httptest.NewServer(d.Handler())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+Prefix+"stream?topics=overview,machines", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for lines := bufio.NewScanner(resp.Body); len(seen) < 3 && lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			seen[name] = true
		}
	}
	if !seen["info"] || !seen["overview"] || !seen["machines"] || len(seen) != 3 {
		t.Errorf("events %v", seen)
	}
	for range mostReaders {
		d.hub.join(&reader{events: make(chan []byte, 1)})
	}
	w := httptest.NewRecorder()
	d.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, Prefix+"stream", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("one reader too many gets %d", w.Code)
	}
	stop()
	_ = resp.Body.Close()
	s.Close()
	<-ran
}
