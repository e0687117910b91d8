package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
)

// driver is a minimal driver: every batch takes the expected time.
type driver struct {
	e    *engine.Engine
	now  serving.Time
	due  []due
	in   []engine.Input
	next serving.QueryID
	// streams is the number of streams that queries belong to, in turn; 0 for none.
	streams uint64
	// ask changes a query before it arrives, and see is called with every decision; nil for nothing.
	ask func(*serving.Query)
	see func(*engine.Decision)
	// tell changes the end of a batch before the engine is told of it; nil for nothing.
	tell func(*engine.Input)
}

type due struct {
	at serving.Time
	in engine.Input
}

func newDriver(tb testing.TB, c *simtest.Cluster, router, batcher string) *driver {
	e, err := systems.System{Router: router, Batcher: batcher}.Engine(c.Spec, c.Profile, c.Planner.Provides())
	if err != nil {
		tb.Fatal(err)
	}
	d := &driver{e: e, due: make([]due, 0, 1<<12), in: make([]engine.Input, 0, 64)}
	d.in = append(d.in, engine.Input{Kind: engine.PlanReady, Plan: c.Plan})
	d.step(0)
	return d
}

func (d *driver) step(now serving.Time) {
	d.now = now
	for _, x := range d.e.Step(now, d.in) {
		if d.see != nil {
			seen := x // which escapes, where x would in every test
			d.see(&seen)
		}
		switch x.Kind {
		case engine.StartBatch:
			d.due = append(d.due, due{
				now.Add(x.Expected), engine.Input{
					Kind: engine.BatchDone, Batch: x.Batch, Instance: x.Instance, Took: x.Expected,
				},
			})
		case engine.LaunchInstance:
			for _, v := range x.Launch.Variants {
				d.due = append(d.due, due{
					now + 1, engine.Input{Kind: engine.InstanceChanged, Instance: x.Instance, Variant: v},
				})
			}
		}
	}
	d.in = d.in[:0]
}

// arrive moves time by gap and lets one query arrive.
func (d *driver) arrive(gap serving.Time, slo time.Duration) {
	until := d.now + gap
	for {
		at := min(until, d.e.NextWake())
		for _, x := range d.due {
			at = min(at, x.at)
		}
		d.due = slices.DeleteFunc(d.due, func(x due) bool {
			if x.at <= at {
				if d.tell != nil {
					told := x.in // as above
					d.tell(&told)
					d.in = append(d.in, told)
					return true
				}
				d.in = append(d.in, x.in)
				return true
			}
			return false
		})
		if at == until {
			d.next++
			q := serving.Query{ID: d.next, Arrived: at, Deadline: at.Add(slo), Items: 1, Variant: serving.None}
			if d.streams > 0 {
				q.Stream = 1 + uint64(d.next)%d.streams
			}
			if d.ask != nil {
				asked := q
				d.ask(&asked)
				q = asked
			}
			d.in = append(d.in, engine.Input{Kind: engine.QueryArrived, Query: q})
		}
		engine.Sort(d.in)
		d.step(max(at, d.now))
		if at == until {
			return
		}
	}
}

// In the steady state a step allocates nothing, whatever the router and the batcher.
func TestStepDoesNotAllocate(t *testing.T) {
	for _, router := range systems.Routers() {
		for _, batcher := range systems.BatchersFor(router) {
			c := simtest.Uniform(8, 2*time.Millisecond, time.Millisecond, 100*time.Millisecond, 16)
			d := newDriver(t, c, router, batcher)
			for range 20_000 {
				d.arrive(300_000, 100*time.Millisecond)
			}
			if n := testing.AllocsPerRun(2000, func() { d.arrive(300_000, 100*time.Millisecond) }); n != 0 {
				t.Errorf("%s + %s: %v allocations for a query", router, batcher, n)
			}
		}
	}
}

// The inputs of one instant give the same decisions in whatever order they are handed to Sort.
func TestOrderOfOneInstantDoesNotMatter(t *testing.T) {
	for seed := uint64(1); seed <= 30; seed++ {
		rng := rand.New(rand.NewPCG(seed, 4))
		c := simtest.Random(rng)
		router := systems.Routers()[rng.IntN(len(systems.Routers()))]
		batchers := systems.BatchersFor(router)
		system := systems.System{Router: router, Batcher: batchers[rng.IntN(len(batchers))]}
		var engines [2]*engine.Engine
		for k := range engines {
			e, err := system.Engine(c.Spec, c.Profile, c.Planner.Provides())
			if err != nil {
				t.Fatal(err)
			}
			e.Step(0, []engine.Input{{Kind: engine.PlanReady, Plan: c.Plan}})
			engines[k] = e
		}
		type running struct{ in engine.Input }
		var open []running
		for _, i := range engines[0].Fleet().Live() {
			for k := range i.Variants() {
				open = append(open, running{
					engine.Input{Kind: engine.InstanceChanged, Instance: i.ID(), Variant: i.Variant(k).Variant},
				})
			}
		}
		load := c.Load(rng, 200)
		next := 0
		for step := 1; step < 120; step++ {
			now := serving.Time(step) * serving.Time(10*time.Millisecond)
			var in []engine.Input
			for n := rng.IntN(6); n > 0 && next < len(load); n-- {
				a := load[next]
				next++
				in = append(in, engine.Input{Kind: engine.QueryArrived, Query: serving.Query{ID: serving.QueryID(next),
					App: a.App, Arrived: now, Deadline: now.Add(c.Spec.Apps[a.App].SLO.Latency),
					Items: a.Items, Priority: a.Priority, MinAccuracy: a.MinAccuracy, Variant: a.Variant,
					Stream: a.Stream}})
			}
			if next > 0 && rng.IntN(4) == 0 {
				in = append(in, engine.Input{
					Kind: engine.QueryCancelled, Query: serving.Query{ID: serving.QueryID(1 + rng.IntN(next))},
				})
			}
			open = slices.DeleteFunc(open, func(r running) bool {
				if rng.IntN(2) == 0 {
					in = append(in, r.in)
					return true
				}
				return false
			})
			shuffled := slices.Clone(in)
			rng.Shuffle(len(shuffled), func(a, b int) { shuffled[a], shuffled[b] = shuffled[b], shuffled[a] })
			engine.Sort(in)
			engine.Sort(shuffled)
			x, y := engines[0].Step(now, in), engines[1].Step(now, shuffled)
			if fmt.Sprint(texts(x)) != fmt.Sprint(texts(y)) {
				t.Fatalf("seed %d, %s + %s, step %d: decisions depend on the order of the inputs:\n%v\n%v", seed,
					system.Router, system.Batcher, step, texts(x), texts(y))
			}
			for k := range x {
				if x[k].Kind == engine.StartBatch {
					open = append(open, running{
						engine.Input{Kind: engine.BatchDone, Batch: x[k].Batch, Instance: x[k].Instance},
					})
				}
			}
			if err := engines[0].Check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
}

func texts(d []engine.Decision) []string {
	out := make([]string, len(d))
	for k := range d {
		out[k] = d[k].String()
	}
	return out
}
