package steps

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/engine/journal"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim"
	"github.com/sluice-serving/sluice/sim/truth"
)

// watched runs an overloaded simulation with a log and a journal.
func watched(t *testing.T, system string) (*Log, []byte) {
	t.Helper()
	c := simtest.Uniform(2, 4*time.Millisecond, time.Millisecond, 30*time.Millisecond, 8)
	c.Spec.Apps[0].QueueLimit = 20
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
	log := New(c.Spec, Options{})
	e.Watch(log.Weigh)
	rec := report.NewRecorder([]report.AppInfo{{Name: "app", BestAccuracy: 0.9}}, report.Options{})
	var out bytes.Buffer
	j, err := journal.NewWriter(&out, journal.Header{
		System: s.Name, Router: s.Router, Batcher: s.Batcher, Statistic: "p95", Provides: c.Planner.Provides(),
		Spec: c.Spec, Measurements: c.Measurements,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sim.Run(sim.Config{Spec: c.Spec, Engine: e, Truth: tr, Source: src, Initial: c.Plan, Recorder: rec,
		Breaks: func(id serving.BatchID) bool { return id >= 7 && id <= 16 },
		Observe: func(now serving.Time, in []engine.Input, d []engine.Decision) {
			log.Observe(now, in, d)
			_ = j.Step(now, in, d)
		}}); err != nil {
		t.Fatal(err)
	}
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	return log, out.Bytes()
}

// A query whose batch failed is explained with both of its runs, from memory and from the journal.
func TestExplain(t *testing.T) {
	testExplain(t, "earliestfinish+mostaccurate")
}

// Where the rule says what it compared, the explanation does, too.
func TestExplainWhatTheRuleCompared(t *testing.T) {
	if text := testExplain(t, "priced+asrouted"); !strings.Contains(text, "compared by the rule") ||
		!strings.Contains(text, "score") {
		t.Errorf("the text lacks what the rule compared:\n%s", text)
	}
}

// testExplain returns the explanation of a query that ran twice.
func testExplain(t *testing.T, system string) string {
	t.Helper()
	log, j := watched(t, system)
	var again *Explanation
	for id := serving.QueryID(1); again == nil; id++ {
		if x, ok := log.Explain(id); ok && len(x.Runs) == 2 && x.Outcome != "" {
			again = x
		}
	}
	if !again.Runs[0].Failed || again.Runs[1].Items != 1 {
		t.Errorf("the second run must be alone: %+v", again)
	}
	var text bytes.Buffer
	if err := again.Text(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("query %d of app", again.Query), "failed after", "because:", "waited", again.Outcome,
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, text.String())
		}
	}
	recorded, err := ExplainJournal(bytes.NewReader(j), again.Query)
	if err != nil {
		t.Fatal(err)
	}
	var other bytes.Buffer
	_ = recorded.Text(&other)
	if other.String() != text.String() {
		t.Errorf("from the journal:\n%s\nfrom the memory:\n%s", other.String(), text.String())
	}
	if _, err := ExplainJournal(bytes.NewReader(j), 1<<40); err == nil {
		t.Error("a query that is not there was explained")
	}
	rec := httptest.NewRecorder()
	log.Explanations().ServeHTTP(rec, httptest.NewRequest("GET", "/debug/explain?query=99999999", nil))
	if rec.Code != http.StatusNotFound {
		t.Errorf("unknown query: %d", rec.Code)
	}
	return text.String()
}

func TestDecisions(t *testing.T) {
	log, _ := watched(t, "earliestfinish+mostaccurate")
	s := httptest.NewServer(log.Decisions())
	defer s.Close()
	get := func(query, accept string) string {
		req, _ := http.NewRequest("GET", s.URL+query, nil)
		req.Header.Set("Accept", accept)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return string(b)
	}
	if text := get("?limit=50", "text/plain"); strings.Count(text, "\n") != 50 ||
		!strings.Contains(text, "variant model") {
		t.Errorf("50 lines of text:\n%s", text)
	}
	if text := get("?limit=5", "application/json"); strings.Count(text, `"reason":`) != 5 {
		t.Errorf("5 lines of JSON:\n%s", text)
	}
	// A follower receives later decisions.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", s.URL+"?limit=0&follow=1", nil)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	log.Observe(99e9, nil, []engine.Decision{
		{
			Kind: engine.EndQuery, Query: 4711, Outcome: serving.Dropped, Reason: engine.WaitedTooLong,
			Variant: serving.None,
		},
	})
	line := make([]byte, 200)
	n, err := resp.Body.Read(line)
	if err != nil || !strings.Contains(string(line[:n]), "q4711 dropped (deadline can no longer be met)") {
		t.Errorf("followed: %q, %v", line[:n], err)
	}
}

// The log of decisions says why no plan came of a request, on a line each.
func TestPlanFailuresAreLogged(t *testing.T) {
	log := New(simtest.Uniform(1, 1e6, 1e6, 1e9, 8).Spec, Options{})
	log.Observe(1e9, nil, []engine.Decision{
		{Kind: engine.KeepPlan, Reason: engine.PlanningFailed, Failure: &engine.PlanFailure{Seq: 3, Err: "no\nroom"}},
		{Kind: engine.KeepPlan, Reason: engine.PlanInvalid, Failure: &engine.PlanFailure{Seq: 5, Err: "0 slots"}},
	})
	text := ""
	latest, _ := log.follow(9, nil)
	for k := range latest {
		text += string(latest[k].line(false))
	}
	if want := `    1.000000 keep-plan no #3: no; room (planning failed)
    1.000000 keep-plan no #5: 0 slots (the plan is not valid)
`; text != want {
		t.Errorf("the log says\n%s, want\n%s", text, want)
	}
}

// The length of a query is part of its explanation where it is known.
func TestExplainTellsTheLength(t *testing.T) {
	log := New(simtest.Uniform(1, time.Millisecond, 0, time.Second, 1).Spec, Options{})
	log.Observe(0, []engine.Input{
		engine.NewQueryArrived(serving.Query{ID: 1, Items: 2, Length: 384, Variant: serving.None}),
		engine.NewQueryArrived(serving.Query{ID: 2, Items: 2, Variant: serving.None}),
	}, nil)
	for id, want := range map[serving.QueryID]string{1: "2 item(s), length 384\n", 2: "2 item(s)\n"} {
		var text bytes.Buffer
		x, ok := log.Explain(id)
		if !ok || x.Text(&text) != nil || !strings.Contains(text.String(), want) {
			t.Errorf("query %d: %q, want %q in it", id, text.String(), want)
		}
	}
}
