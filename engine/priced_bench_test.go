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

// The default rule on machines of three types, with apps of three variants each: ten that are loaded everywhere, at
// 90 % of what the machines carry with the fastest variants in full batches, and more, of which a machine holds a
// quarter, in so many ways for each type, at 70 %. ns/op is the time for a query from its arrival to its end.
func BenchmarkPriced(b *testing.B) {
	for _, c := range []struct {
		machines, apps, ways int
		load                 float64
	}{{20, 10, 0, 0.9}, {200, 10, 0, 0.9}, {2000, 10, 0, 0.9}, {180, 20, 20, 0.7}, {2000, 200, 166, 0.7}} {
		name := fmt.Sprintf("machines=%d", c.machines)
		if c.ways > 0 {
			name += fmt.Sprintf(",apps=%d,ways=%d", c.apps, c.ways)
		}
		b.Run(name, func(b *testing.B) {
			const slo = 200 * time.Millisecond
			apps, load, warm := c.apps, c.load, 40*c.machines
			if c.ways > 0 {
				warm /= 10 // a query takes far longer
			}
			c := simtest.PartPool(c.machines, apps, 3, c.ways, slo)
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
			gap := 1e9 / (c.Carries * load)
			at := 3.0
			query := func() {
				at += rng.ExpFloat64() * gap
				p.until(serving.Time(at))
				p.now = max(p.now, serving.Time(at))
				p.next++
				p.in = append(p.in, engine.Input{Kind: engine.QueryArrived, Query: serving.Query{
					ID: p.next, App: serving.AppID(rng.IntN(apps)), Arrived: p.now, Deadline: p.now.Add(slo), Items: 1,
					Variant: serving.None,
				}})
				p.step()
			}
			for range warm {
				query()
			}
			b.ReportAllocs()
			for b.Loop() {
				query()
			}
		})
	}
}
