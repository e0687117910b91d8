package server

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/hosttest"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// unserved is the service of a server that is ready and that nobody can reach.
func unserved(t *testing.T) *service {
	s, err := New(t.Context(), hosttest.Profiled(t, hosttest.Fakes), Options{GRPC: "off", Admin: "off"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s.service
}

// What a query meets on its way to the engine shows in what is left of one that is refused there: what comes before
// has happened, and what comes after has not.
func TestOrderOfWhatAQueryMeets(t *testing.T) {
	s := unserved(t)
	const many = 16
	s.recorder = &recorder{share: 1, queue: make(chan recorded, many)}
	s.shadow = &shadow{share: 1, s: s, queue: make(chan shadowed, many), seen: make(map[serving.VariantID]*agreement)}
	told := &appSequences{idle: time.Hour, most: many, open: make(map[string]*sequence)}
	app, _ := s.Lookup("app")
	refused := ""
	front := ""
	link := func(name string) server.Link {
		return func(ctx context.Context, q *dataplane.Request, next server.Infer) (*dataplane.Response, error) {
			if front += name + " "; refused == name {
				return nil, context.DeadlineExceeded
			}
			return next(ctx, q)
		}
	}
	infer := s.Chain(server.Links{Tenant: link("tenant"), Deadline: link("deadline"), Trace: link("trace")})
	unloaded := func() { s.setUnloaded(app, true) }
	sequences := func() { s.sequences.add(app.App, told) }
	for _, x := range []struct {
		name     string
		before   func()
		query    dataplane.Request
		refused  string // by a link of the front ends
		err      string // "" for an answer
		front    string
		open     int // sequences
		recorded int
		shadowed int
	}{
		{"one that is answered", nil, dataplane.Request{}, "", "", "tenant deadline trace ", 0, 1, 1},
		{"one whose deadline has passed", nil, dataplane.Request{}, "deadline", "deadline", "tenant deadline ",
			0, 0, 0},
		{"one of an app that is gone", sequences, dataplane.Request{Generation: 1, Stream: "1", Begins: true}, "",
			"deleted", "tenant deadline trace ", 0, 0, 0},
		{"one of a sequence that nobody started", nil, dataplane.Request{Stream: "1"}, "", "START",
			"tenant deadline trace ", 0, 0, 0},
		{"one that starts a sequence", nil, dataplane.Request{Stream: "1", Begins: true}, "", "",
			"tenant deadline trace ", 1, 1, 0}, // it is asked twice by nobody: the model would see it twice
		{"one that the engine refuses", nil, dataplane.Request{Stream: "1", MinAccuracy: 1}, "", "accura",
			"tenant deadline trace ", 1, 1, 0},
		{"one of no sequence, of a model that is unloaded", unloaded, dataplane.Request{Stream: "2"}, "", "START",
			"tenant deadline trace ", 1, 0, 0},
		{"one of a model that is unloaded", nil, dataplane.Request{Stream: "1"}, "", "is unloaded",
			"tenant deadline trace ", 1, 1, 0},
	} {
		if x.before != nil {
			x.before()
		}
		x.query.App, x.query.Items, x.query.Variant, x.query.Timeout = app.App, 1, serving.None, time.Minute
		x.query.Inputs = []tensor.Tensor{{Name: "x", DType: tensor.FP32, Shape: []int64{1, 4}, Data: make([]byte, 16)}}
		refused, front = x.refused, ""
		_, err := infer(t.Context(), &x.query)
		if (err == nil) != (x.err == "") || err != nil && !strings.Contains(err.Error(), x.err) {
			t.Errorf("%s: %v, want %q", x.name, err, x.err)
		}
		if front != x.front || len(told.open) != x.open || len(s.recorder.queue) != x.recorded ||
			len(s.shadow.queue) != x.shadowed {
			t.Errorf("%s: met %q, %d sequences are open, %d recorded, %d to be compared; want %q, %d, %d, %d", x.name,
				front, len(told.open), len(s.recorder.queue), len(s.shadow.queue),
				x.front, x.open, x.recorded, x.shadowed)
		}
		for len(s.recorder.queue) > 0 {
			<-s.recorder.queue
		}
		for len(s.shadow.queue) > 0 {
			<-s.shadow.queue
		}
	}
}

// A query that a server asks by itself, to compare two variants, meets none of that: it spends no tenant's share, is
// not recorded, and is not compared in turn.
func TestShadowQueriesMeetNoLink(t *testing.T) {
	s := unserved(t)
	s.recorder = &recorder{share: 1, queue: make(chan recorded, 1)}
	s.shadow = &shadow{share: 1, s: s, queue: make(chan shadowed, 2), seen: make(map[serving.VariantID]*agreement)}
	app, _ := s.Lookup("app")
	met := 0
	infer := s.Chain(server.Links{Tenant: func(ctx context.Context, q *dataplane.Request, next server.Infer) (
		*dataplane.Response, error) {
		met++
		q.Tenant, q.Owner = 1, "shop"
		return next(ctx, q)
	}})
	if _, err := infer(t.Context(), &dataplane.Request{App: app.App, Items: 1, Variant: serving.None,
		Timeout: time.Minute, Inputs: []tensor.Tensor{
			{Name: "x", DType: tensor.FP32, Shape: []int64{1, 4}, Data: make([]byte, 16)},
		}}); err != nil {
		t.Fatal(err)
	}
	x := <-s.shadow.queue
	s.shadow.compare(t.Context(), &x)
	if x.request.Tenant != 0 || x.request.Owner != "" {
		t.Errorf("the tenant of the query that is compared pays again: %+v", x.request)
	}
	if len(s.shadow.seen) == 0 {
		t.Error("nothing was compared")
	}
	if met != 1 || len(s.recorder.queue) != 1 || len(s.shadow.queue) != 0 {
		t.Errorf("queries of a comparison met links: %d, %d recorded, %d to be compared", met, len(s.recorder.queue),
			len(s.shadow.queue))
	}
}
