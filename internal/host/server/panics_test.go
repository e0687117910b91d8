package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/questions"
	"github.com/sluice-serving/sluice/internal/host/saved"
	"github.com/sluice-serving/sluice/internal/hosttest"
	"github.com/sluice-serving/sluice/policy/plan"
)

// brokenPlanner panics.
type brokenPlanner struct{ plan.Planner }

func (brokenPlanner) Plan(context.Context, plan.Request) (*plan.Plan, error) { panic("on purpose") }

// kept is a log that can be read while it is written.
type kept struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (k *kept) Write(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.b.Write(b)
}

func (k *kept) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.b.String()
}

// A server whose planner panics, and whose page asks what panics, goes on serving. The log has the stacks and a metric
// counts.
func TestAServerOutlivesPanics(t *testing.T) {
	p, err := hosttest.Profiled(t, hosttest.Fakes).Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p = p.WithPlanner(brokenPlanner{p.PlannerInUse()})
	var log kept
	s, err := NewPlanned(t.Context(), p, Options{
		HTTP: "127.0.0.1:0", GRPC: "off", Admin: "127.0.0.1:0", Log: slog.New(slog.NewTextHandler(&log, nil)),
		WhatIf: func(context.Context, *questions.WhatIf) (*questions.WhatIfAnswer, error) { panic("asked on purpose") },
	})
	if err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- s.Serve(serving) }()
	defer func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}()
	if err := s.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.plane.OpenStream(0, "a", 3); err != nil { // a reason to plan
		t.Fatal(err)
	}
	if r, err := http.Post("http://"+s.AdminAddr()+"/api/v1/what-if", "application/json", //nolint:noctx // aborted
		strings.NewReader(`{}`)); err == nil {
		t.Errorf("a question that panics is answered: %v", r.Status)
		_ = r.Body.Close()
	}
	metrics := func() string {
		r, err := http.Get("http://" + s.AdminAddr() + "/metrics") //nolint:noctx // of a test
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	limit, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	for _, want := range []string{
		`sluice_panics_total{what="planner"}`, `sluice_panics_total{what="request"} 1`,
		`sluice_plan_failures_total{reason="planning failed"}`,
	} {
		if err := waitFor(limit, func() bool { return strings.Contains(metrics(), want) }); err != nil {
			t.Fatalf("%s: %v", want, err)
		}
	}
	for _, want := range []string{"the planner panicked: on purpose", "asked on purpose", "brokenPlanner", "whatIf"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q: %s", want, log.String())
		}
	}
	if !s.Ready() {
		t.Error("the server is not ready any more")
	}
	if _, err := s.plane.Infer(t.Context(), &dataplane.Request{App: 0, Items: 1, Variant: -1}); err != nil {
		t.Errorf("a query after panics: %v", err)
	}
}

// What runs beside the queries begins again after a panic.
func TestHelpersBeginAgain(t *testing.T) {
	p, err := hosttest.Profiled(t, hosttest.Fakes).Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewPlanned(t.Context(), p, Options{HTTP: server.Off, GRPC: "127.0.0.1:0", Admin: server.Off})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	runs := 0
	s.keep(t.Context(), "helper", func() {
		if runs++; runs < 2 {
			panic("on purpose")
		}
	})
	if runs != 2 {
		t.Errorf("%d runs", runs)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	s.keep(ended, "helper", func() { runs++; panic("on purpose") })
	if runs != 3 {
		t.Errorf("a helper of a server that ends began again: %d runs", runs)
	}
}

// The journal of a run that a panic of the engine ended says so. A replay gives the engine what it was told, and says
// why the run ended where this version does not crash.
func TestTheJournalSaysWhyTheEngineCrashed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.journal")
	s := running(t, hosttest.Fakes, Options{Journal: path})
	if err := s.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.plane.Inspect(func(e *engine.Engine) {
		s.crash(s.plane.Now(), []engine.Input{engine.NewPriceChanged(0, 3)},
			&dataplane.Panic{What: "engine", Value: "on purpose"})
		b, err := os.ReadFile(path) // before anything else is recorded
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		var last struct {
			In    []json.RawMessage `json:"in"`
			Crash string            `json:"crash"`
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || len(last.In) != 1 ||
			last.Crash != "the engine panicked: on purpose" {
			t.Errorf("%v: the journal ends with %s", err, lines[len(lines)-1])
		}
		copied := path + ".copy"
		if err := os.WriteFile(copied, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := host.Replay(copied); err == nil || !strings.Contains(err.Error(), "on purpose") {
			t.Errorf("a replay says %v", err)
		}
		saved, err := saved.OpenSaved(copied, 0)
		if err != nil || !strings.Contains(saved.Notice(), "on purpose") {
			t.Fatalf("%v, a saved run says %q", err, saved.Notice())
		}
		if err := saved.Close(); err != nil {
			t.Error(err)
		}
	})
}
