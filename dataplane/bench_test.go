package dataplane_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/systems"
)

// BenchmarkHandOver is the way of one query through the plane, with a runtime that takes no time.
func BenchmarkHandOver(b *testing.B) {
	w := simtest.Uniform(1, time.Microsecond, time.Microsecond, time.Second, 8)
	s, err := systems.Get("sluice")
	if err != nil {
		b.Fatal(err)
	}
	e, err := s.Engine(w.Spec, w.Profile, w.Planner.Provides())
	if err != nil {
		b.Fatal(err)
	}
	p, err := dataplane.New(dataplane.Config{Spec: w.Spec, Engine: e, Initial: w.Plan, Backend: func(serving.WorkerID) dataplane.Backend { return &runtime{run: echo} }})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	r := one()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Infer(context.Background(), r); err != nil {
			b.Fatal(err)
		}
	}
}
