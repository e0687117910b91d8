// Package overload measures what systems answer in time when more comes than a machine can serve: from once to twenty
// times its capacity, simulated and through the real data plane. It is nobody's paper.
package overload

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/internal/runtime/fake"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim"
	"github.com/sluice-serving/sluice/sim/truth"
)

// The machine: batches of up to maxBatch items take base and perItem for each. Queries have one item.
const (
	base, perItem = 50 * time.Millisecond, time.Millisecond
	maxBatch      = 8
	objective     = 500 * time.Millisecond
	queueLimit    = 10_000
)

// capacity is the most queries/s that the machine can serve: full batches one after the other.
var capacity = maxBatch / (base + maxBatch*perItem).Seconds()

const (
	simulatedFor = 60 // seconds of arrivals
	liveFor      = 10
)

// times are the offered loads, in capacities.
var times = []float64{0.5, 0.9, 1, 1.1, 1.5, 2, 3, 5, 7, 10, 15, 20}

// liveTimes are those of the live runs, which take liveFor seconds each.
var liveTimes = []float64{1, 2, 5, 10, 20}

// compared are the systems: ours, then rules of papers and of common servers. Their planners and scalers do not matter
// with one model on one machine, which keeps it.
var compared = []string{systems.Default, "proteus-batching", "nexus-batching", "clipper", "triton-like", "greedy"}

// processes are how queries arrive.
var processes = []struct {
	name, title string
	app         workload.AppSpec
}{
	{"poisson", "by chance", workload.AppSpec{Process: "poisson"}},
	{"bursts", "in bursts", workload.AppSpec{Process: "gamma", Shape: 0.05}},
	{"even", "evenly", workload.AppSpec{Process: "uniform"}},
}

// world is the machine with a plan for it.
type world struct {
	spec    *serving.Spec
	m       serving.Measurements
	profile *profile.Table
	plan    *plan.Plan
	offers  plan.Sections
}

func newWorld(ctx context.Context) (*world, error) {
	w := &world{spec: &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "machine", PricePerHour: 1, Cores: 1}},
		Workers:     []serving.Worker{{Name: "machine"}},
		Apps: []serving.App{{
			Name: "app", SLO: serving.SLO{Latency: objective, Percentile: 99}, Weight: 1, QueueLimit: queueLimit,
			Stages: []serving.StageID{0},
		}},
		Stages:   []serving.Stage{{Name: "app", Variants: []serving.VariantID{0}}},
		Variants: []serving.Variant{{Name: "model", Accuracy: 1, MaxBatch: maxBatch}},
	}}
	for b := 1; b <= maxBatch; b++ {
		w.m.Latency = append(w.m.Latency, reproduce.Always(serving.LatencyPoint{
			Items: b, Concurrency: 1, Samples: 100,
		}, base+time.Duration(b)*perItem))
	}
	var err error
	if w.profile, err = profile.NewTable(w.spec, w.m, profile.P95); err != nil {
		return nil, err
	}
	planner := static.Planner{
		Profile: w.profile, Instances: []static.Instance{{Variants: []serving.VariantID{0}}}, Pooled: true,
	}
	w.offers = planner.Provides()
	w.plan, err = planner.Plan(ctx, plan.Request{Spec: w.spec})
	return w, err
}

func (w *world) engine(name string) (*engine.Engine, error) {
	s, err := systems.Get(name)
	if err != nil {
		return nil, err
	}
	s.Planner, s.Scaler = "static", "fixed"
	return s.Engine(w.spec, w.profile, w.offers)
}

func source(k int, times float64, seconds int, seed uint64) (workload.Source, error) {
	app := processes[k].app
	app.App, app.Rate = "app", times*capacity
	load := workload.Spec{Seed: seed, DurationS: float64(seconds), Apps: []workload.AppSpec{app}}
	return load.Source(func(string) (serving.AppID, error) { return 0, nil })
}

// observer is called with every step of an engine.
type observer func(now serving.Time, in []engine.Input, out []engine.Decision)

// share returns the share of the capacity that a system answers in time of a load of so many seconds, which run runs.
func share(ctx context.Context, system string, k int, times float64, seconds int, seed uint64,
	run func(*world, *engine.Engine, workload.Source, observer) error) (float64, error) {
	w, err := newWorld(ctx)
	if err != nil {
		return 0, err
	}
	e, err := w.engine(system)
	if err != nil {
		return 0, err
	}
	src, err := source(k, times, seconds, seed)
	if err != nil {
		return 0, err
	}
	in := 0
	err = run(w, e, src, func(_ serving.Time, _ []engine.Input, out []engine.Decision) { in += inTime(out) })
	return float64(in) / float64(seconds) / capacity, err
}

func inTime(out []engine.Decision) (n int) {
	for k := range out {
		if d := &out[k]; d.Kind == engine.EndQuery && d.Outcome == serving.Served && !d.Late {
			n++
		}
	}
	return n
}

// simulated returns the share of the capacity that a system answers in time.
func simulated(ctx context.Context, system string, k int, times float64, seed uint64) (float64, error) {
	return share(ctx, system, k, times, simulatedFor, seed,
		func(w *world, e *engine.Engine, src workload.Source, observe observer) error {
			tr, err := truth.NewTable(w.spec, w.m, truth.Exact, nil)
			if err != nil {
				return err
			}
			_, err = sim.Run(sim.Config{
				Spec: w.spec, Engine: e, Truth: tr, Initial: w.plan, Warm: true, Source: src, Observe: observe,
			})
			return err
		})
}

// live is simulated on the real clock: the real data plane with a worker that sleeps.
func live(ctx context.Context, system string, k int, times float64, seed uint64) (float64, error) {
	return onClock(ctx, system, k, times, seed, 0)
}

// onClock is live with batches that end later than believed.
func onClock(ctx context.Context, system string, k int, times float64, seed uint64, late time.Duration) (float64,
	error) {
	return share(ctx, system, k, times, liveFor, seed,
		func(w *world, e *engine.Engine, src workload.Source, observe observer) error {
			backend, err := fake.New(fake.Config{
				Latency: func(_ serving.VariantID, items int) time.Duration {
					return base + time.Duration(items)*perItem + late
				},
			})
			if err != nil {
				return err
			}
			return reproduce.RunLive(ctx, dataplane.Config{
				Spec: w.spec, Engine: e, Initial: w.plan, Slack: dataplane.LearnedSlack,
				Backend: func(serving.WorkerID) dataplane.Backend { return backend }, Observe: observe,
			}, src)
		})
}

// runner collects the runs.
type runner struct{ *reproduce.Runner }

// do returns the share of the capacity that a system answers in time.
type do func(ctx context.Context, system string, k int, times float64, seed uint64) (float64, error)

// figure runs systems under loads, with one panel for each process.
func figure(how string, weight int, loads []float64, names []string, run do) func(*runner, *reproduce.Sheet) error {
	return func(r *runner, f *reproduce.Sheet) error {
		c := f.Chart(f.Figure, fmt.Sprintf("Goodput under overload, %s: 50 ms + 1 ms an item, batches of %d, 500 ms",
			how, maxBatch), len(processes))
		for k, p := range processes {
			panel := c.Panel("in time, % of capacity", "offered, in capacities: "+p.title, 0, 105)
			for _, system := range names {
				for _, x := range loads {
					key := fmt.Sprintf("%s %s %s %v", how, p.name, system, x)
					in := reproduce.All(reproduce.Add(r.Runner, key, weight, r.Seeds,
						func(ctx context.Context, seed uint64) (float64, error) {
							return run(ctx, system, k, x, seed)
						}))
					f.At("run", how, "arrivals", p.name, "offered", x).
						Row(system, "in time", "% of capacity", in.Times(100))
					panel.Point(system, x, in.Times(100))
				}
			}
		}
		return nil
	}
}

var study = reproduce.Study[*runner]{
	Name: "overload", Title: "Overload: what is answered in time when more comes than a machine can serve",
	New: func(q reproduce.Request) (*runner, error) { return &runner{reproduce.NewRunner(q)}, nil },
	Figures: []reproduce.Declaration[*runner]{
		{Name: "G", Doc: "what is answered in time from half to twenty times the capacity",
			Declare: figure("simulated", 1, times, compared, simulated)},
		// Its runs take ten seconds each, and need a machine that is not busy.
		{Name: "L", Doc: "the same on the real clock, through the real data plane", OnRequest: true,
			Declare: figure("live", 100, liveTimes, []string{systems.Default}, live)},
	},
}

// Paper returns the experiments.
func Paper() reproduce.Paper { return study.Paper() }
