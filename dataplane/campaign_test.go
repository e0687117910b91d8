package dataplane_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// scriptedBackend is a worker that behaves as a script says. A part of what hangs does not heed its context.
type scriptedBackend struct {
	*world
	script *simtest.Script
	worker serving.WorkerID
	begun  time.Time
	over   chan struct{} // closed when what hangs for ever may end
	open   *atomic.Int64 // runners that are not closed
}

func (b *scriptedBackend) now() serving.Time { return serving.Time(time.Since(b.begun)) }

func (b *scriptedBackend) Launch(ctx context.Context, s dataplane.InstanceSpec) (dataplane.Runner, error) {
	r := &scriptedRunner{b, s.DeviceType}
	if err := r.Load(ctx, s.Variants[0], s.BatchLimit); err != nil {
		return nil, err
	}
	b.open.Add(1)
	return r, nil
}

type scriptedRunner struct {
	b      *scriptedBackend
	device serving.DeviceTypeID
}

func (r *scriptedRunner) Load(ctx context.Context, v serving.VariantID, _ int) error {
	x := r.b.script.At(r.b.now(), r.b.worker)
	if x.LoadHangs {
		<-ctx.Done()
		return ctx.Err()
	}
	if err := pause(ctx, r.b.Load(v, r.device)); err != nil {
		return err
	}
	if r.b.script.At(r.b.now(), r.b.worker).Down {
		return fmt.Errorf("down: %w", dataplane.ErrInstanceLost)
	}
	return nil
}

func (r *scriptedRunner) Unload(context.Context, serving.VariantID) error { return nil }
func (r *scriptedRunner) Close() error                                    { r.b.open.Add(-1); return nil }

func (r *scriptedRunner) Run(ctx context.Context, b *dataplane.Batch) error {
	x := r.b.script.At(r.b.now(), r.b.worker)
	switch {
	case x.Down:
		return fmt.Errorf("down: %w", dataplane.ErrInstanceLost)
	case x.Hangs && b.ID%2 == 0:
		<-r.b.over
		return errors.New("it hung")
	case x.Hangs:
		<-ctx.Done()
		return ctx.Err()
	}
	took := r.b.Service(b.Variant, r.device, b.Items, 1, 0)
	if x.Slow > 1 {
		took = time.Duration(float64(took) * x.Slow)
	}
	if err := pause(ctx, took); err != nil {
		return err
	}
	switch {
	case x.Breaks && b.ID%3 == 0:
		panic("a runtime in trouble")
	case x.Breaks:
		return errors.New("broken on purpose")
	}
	return nil
}

// The scripts of the simulator's fault campaign through the data plane, its goroutines on fake time: every query is
// answered once, none long after its deadline, and every runner is closed in the end. SLUICE_CAMPAIGN sets the number
// of scripts.
func TestFaultCampaign(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() { // under the race detector each takes ten times as long
		seeds = 20
	}
	if s := os.Getenv("SLUICE_CAMPAIGN"); s != "" {
		var err error
		if seeds, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	answered, served := 0, 0
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			a, s := liveCampaign(t, seed+1)
			answered, served = answered+a, served+s
		})
	}
	t.Logf("%d scripts: %d queries answered, %d of them served", seeds, answered, served)
	if served == 0 || served == answered {
		t.Error("nothing went well, or nothing went wrong")
	}
}

func liveCampaign(t *testing.T, seed uint64) (answered, served int) {
	rng := rand.New(rand.NewPCG(seed, 98))
	routers := systems.Routers()
	router := routers[rng.IntN(len(routers))]
	batchers := systems.BatchersFor(router)
	w := newWorld(systems.System{Router: router, Batcher: batchers[rng.IntN(len(batchers))], Scaler: "periodic"}, seed)
	spec := w.cluster.Spec
	for a := range spec.Apps {
		if spec.Apps[a].Late == serving.ServeLate {
			spec.Apps[a].GiveUp = 3 * time.Second
		}
	}
	end := w.load[len(w.load)-1].At
	script := w.cluster.RandomScript(rng, end, len(w.load))
	begun, over := time.Now(), make(chan struct{})
	var open atomic.Int64
	var mu sync.Mutex
	longest := time.Second
	backends := make([]dataplane.Backend, len(spec.Workers))
	for k := range backends {
		backends[k] = &scriptedBackend{w, script, serving.WorkerID(k), begun, over, &open}
	}
	asked := 0
	p, err := dataplane.New(dataplane.Config{
		Spec: spec, Engine: w.engine(), Initial: w.cluster.Plan,
		Backend: func(k serving.WorkerID) dataplane.Backend { return backends[k] },
		Planner: planFunc(func(ctx context.Context, r plan.Request) (*plan.Plan, error) {
			if asked++; script.Plans(asked - 1) {
				if asked%2 == 0 {
					panic("a planner in trouble")
				}
				return nil, errors.New("a planner in trouble")
			}
			return w.cluster.Planner.Plan(ctx, r)
		}, w.cluster.Planner),
		LaunchTimeout: 5 * time.Second, Rows: 1 << 20,
		Observe: func(_ serving.Time, _ []engine.Input, out []engine.Decision) {
			mu.Lock()
			defer mu.Unlock()
			for k := range out {
				if out[k].Kind == engine.StartBatch {
					longest = max(longest, engine.RunLimit(spec, &out[k]), 25*out[k].Expected)
				}
			}
		},
	})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	until := func(at serving.Time) { time.Sleep(time.Until(begun.Add(time.Duration(at)))) }
	var accidents sync.WaitGroup
	accidents.Go(func() {
		for _, x := range script.Episodes {
			if x.Down {
				until(x.From)
				p.Lose(x.Worker)
			}
		}
	})
	accidents.Go(func() {
		for _, x := range script.Cancels {
			until(x.At)
			p.Cancel(x.Query)
		}
	})
	type answer struct {
		query int
		after time.Duration
		err   error
	}
	answers := make(chan answer, 2*len(w.load))
	for k, a := range w.load {
		until(a.At)
		sent := time.Now()
		p.Submit(requestOf(a), func(_ *dataplane.Response, err error) { answers <- answer{k, time.Since(sent), err} })
	}
	seen := make(map[int]bool)
	for range w.load {
		x := <-answers
		if seen[x.query] {
			t.Errorf("seed %d: query %d was answered twice", seed, x.query+1)
		}
		seen[x.query] = true
		answered++
		if x.err == nil {
			served++
		}
		a := &w.load[x.query]
		app := &spec.Apps[a.App]
		mu.Lock()
		bound := max(a.Timeout, app.SLO.Latency) + app.GiveUp + app.ColdWait + 4*longest
		mu.Unlock()
		if x.after > bound {
			t.Errorf("seed %d: query %d was answered after %v, more than %v: %v", seed, x.query+1, x.after, bound,
				x.err)
		}
	}
	accidents.Wait()
	close(over)
	p.Close()
	synctest.Wait()
	select {
	case x := <-answers:
		t.Errorf("seed %d: query %d was answered once more", seed, x.query+1)
	default:
	}
	if n := open.Load(); n != 0 {
		t.Errorf("seed %d: %d runners are not closed", seed, n)
	}
	return answered, served
}

func requestOf(a workload.Arrival) *dataplane.Request {
	return &dataplane.Request{
		App: a.App, Items: int(a.Items), Timeout: a.Timeout, Priority: a.Priority, MinAccuracy: a.MinAccuracy,
		Variant: a.Variant, Stream: names[a.Stream],
	}
}

// planned is a planner whose plans a function makes.
type planned struct {
	plan.Planner
	do func(context.Context, plan.Request) (*plan.Plan, error)
}

func planFunc(do func(context.Context, plan.Request) (*plan.Plan, error), like plan.Planner) plan.Planner {
	return planned{like, do}
}

func (p planned) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) { return p.do(ctx, r) }
