package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/algo/pq"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
)

// pool is a driver for many machines: it finds the next end in logarithmic time, so that the engine's own time shows.
type pool struct {
	e    *engine.Engine
	now  serving.Time
	in   []engine.Input
	ends pq.Heap        // by instance
	done []engine.Input // by instance: one batch at a time runs on each
	next serving.QueryID
}

func (p *pool) step() {
	engine.Sort(p.in)
	for _, x := range p.e.Step(p.now, p.in) {
		switch x.Kind {
		case engine.StartBatch:
			p.plan(p.now.Add(x.Expected), engine.Input{
				Kind: engine.BatchDone, Batch: x.Batch, Instance: x.Instance, Took: x.Expected,
			})
		case engine.LaunchInstance:
			p.plan(p.now+1, engine.Input{
				Kind: engine.InstanceChanged, Instance: x.Instance, Variant: x.Launch.Variants[0],
			})
		case engine.LoadVariant:
			p.in = append(p.in, engine.Input{
				Kind: engine.InstanceChanged, Instance: x.Instance, Variant: x.Variant,
			})
		}
	}
	p.in = p.in[:0]
}

func (p *pool) plan(at serving.Time, in engine.Input) {
	for len(p.done) <= int(in.Instance) {
		p.done = append(p.done, engine.Input{})
	}
	p.done[in.Instance] = in
	p.ends.Set(int(in.Instance), int64(at))
}

// until moves time on, through everything that happens before.
func (p *pool) until(t serving.Time) {
	for {
		i, at, ok := p.ends.Min()
		wake := p.e.NextWake()
		next := min(t, wake)
		if ok {
			next = min(next, serving.Time(at))
		}
		if next >= t {
			return
		}
		p.now = max(next, p.now)
		for ok && serving.Time(at) <= p.now {
			p.ends.Remove(i)
			p.in = append(p.in, p.done[i])
			i, at, ok = p.ends.Min()
		}
		p.step()
	}
}

// The default rule on machines of three types, with ten apps of three variants each that are loaded everywhere, at 90 %
// of what the machines carry with the fastest variants in full batches. ns/op is the time for a query from its arrival
// to its end.
func BenchmarkPriced(b *testing.B) {
	for _, machines := range []int{20, 200, 2000} {
		b.Run(fmt.Sprintf("machines=%d", machines), func(b *testing.B) {
			const slo = 200 * time.Millisecond
			c := simtest.Pool(machines, 10, 3, slo)
			e, err := systems.System{Router: "priced", Batcher: "asrouted"}.Engine(c.Spec, c.Profile,
				c.Planner.Provides())
			if err != nil {
				b.Fatal(err)
			}
			p := &pool{e: e, in: []engine.Input{{Kind: engine.PlanReady, Plan: c.Plan}}}
			p.step()
			p.now = 2
			p.until(3)
			rng := rand.New(rand.NewPCG(1, 1))
			gap := 1e9 / (c.Carries * 0.9)
			at := 3.0
			query := func() {
				at += rng.ExpFloat64() * gap
				p.until(serving.Time(at))
				p.now = max(p.now, serving.Time(at))
				p.next++
				p.in = append(p.in, engine.Input{Kind: engine.QueryArrived, Query: serving.Query{
					ID: p.next, App: serving.AppID(rng.IntN(10)), Arrived: p.now, Deadline: p.now.Add(slo), Items: 1,
					Variant: serving.None,
				}})
				p.step()
			}
			for range 40 * machines {
				query()
			}
			b.ReportAllocs()
			for b.Loop() {
				query()
			}
		})
	}
}
