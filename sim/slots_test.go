package sim

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/workload"
)

// named believes latencies that follow from the names of variants, whatever their places in the tables are.
type named struct{ spec *serving.Spec }

func (n named) of(v serving.VariantID, d serving.DeviceTypeID, what string) time.Duration {
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%s %d %s", n.spec.Variants[v].Name, d, what)
	return time.Duration(h.Sum32()%4000) * time.Microsecond
}

func (n named) Latency(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration {
	return time.Millisecond + n.of(v, d, "base") + time.Duration(items*concurrency)*n.of(v, d, "item")/10
}

func (n named) Load(v serving.VariantID, d serving.DeviceTypeID) time.Duration {
	return 20 * n.of(v, d, "load")
}

func (n named) Learner() profile.Learner { return nil }

// changing is a run in which one app after the other comes, gets new versions and is closed, beside those of a cluster.
type changing struct {
	c      *simtest.Cluster
	reuses bool
	spec   *serving.Spec // after the growths so far
	steps  []changeStep
	done   int
	e      *engine.Engine
	apps   map[string]serving.AppID
	load   []symbolic
	said   []string
	places int // apps, stages and variants at most
}

// changeStep is what a growth does: an app that comes, a new version of it, or its end.
type changeStep struct {
	at   serving.Time
	name string
	do   func(s *serving.Spec, a serving.AppID, free *serving.Free) (*serving.Spec, serving.AppID)
}

// symbolic is an arrival for an app by its name.
type symbolic struct {
	app string
	workload.Arrival
}

// Next implements workload.Source. An app that comes later has its place by then: a query of the cluster comes before.
func (x *changing) Next() (workload.Arrival, bool) {
	if len(x.load) == 0 {
		return workload.Arrival{}, false
	}
	a := x.load[0]
	x.load = x.load[1:]
	if a.app != "" {
		a.App = x.apps[a.app]
	}
	return a.Arrival, true
}

// plan fills in the growth that comes next, as the engine is now.
func (x *changing) plan(growths []Growth, now serving.Time) {
	if x.done < len(x.steps) && now >= x.steps[x.done].at {
		x.spec = x.e.Spec()
		x.done++
	}
	if x.done == len(x.steps) {
		return
	}
	s := &x.steps[x.done]
	free := &serving.Free{}
	if x.reuses {
		*free = x.e.Free()
	}
	next, a := s.do(x.spec, x.apps[s.name], free)
	x.apps[s.name] = a
	*growths[x.done].Growth = engine.Growth{Spec: next, Known: plan.Known{Profile: named{next}}}
	x.places = max(x.places, len(next.Apps)+len(next.Stages)+len(next.Variants))
}

// Service implements truth.Model.
func (x *changing) Service(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int,
	_ float64) time.Duration {
	return named{x.e.Spec()}.Latency(v, d, items, concurrency)
}

func (x *changing) Load(v serving.VariantID, d serving.DeviceTypeID) time.Duration {
	return named{x.e.Spec()}.Load(v, d)
}

func (x *changing) Draw(serving.VariantID, serving.DeviceTypeID, int, int) float64 { return 0 }

// say notes a decision with names in place of identifiers.
func (x *changing) say(now serving.Time, d *engine.Decision) {
	spec := x.e.Spec()
	variant := func(v serving.VariantID) string {
		if v == serving.None {
			return "none"
		}
		return spec.Variants[v].Name
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%v %v %v i%d b%d q%d %v %v", now, d.Kind, d.Reason, d.Instance, d.Batch, d.Query, d.Outcome,
		d.Late)
	switch d.Kind {
	case engine.StartBatch:
		fmt.Fprintf(&b, " %s of %s, %d in %v: %v", variant(d.Variant), spec.Stages[d.Stage].Name, d.Items,
			d.Expected, d.Tasks)
	case engine.EndQuery:
		fmt.Fprintf(&b, " %s by %s, %v, %.6f", spec.Apps[d.App].Name, variant(d.Variant), d.Queue, d.Accuracy)
	case engine.LaunchInstance:
		fmt.Fprintf(&b, " %v %s %d %d", d.Launch.Key, spec.Stages[d.Launch.Stage].Name, d.Launch.BatchLimit,
			d.Launch.Slots)
		for _, v := range d.Launch.Variants {
			b.WriteString(" " + variant(v))
		}
	case engine.LoadVariant, engine.UnloadVariant, engine.LimitBatch:
		b.WriteString(" " + variant(d.Variant))
	case engine.RequestPlan:
		for a := range spec.Apps {
			if !spec.Apps[a].Closed {
				fmt.Fprintf(&b, ", %s %.9g %v %v", spec.Apps[a].Name, d.Request.Rates[a], d.Request.Mixes[a],
					d.Request.Recent[a])
			}
		}
	}
	x.said = append(x.said, b.String())
}

// randomApp returns an app of one or two stages in a row, each with one to three variants.
func randomApp(rng *rand.Rand, name string) *serving.Spec {
	s := &serving.Spec{Apps: []serving.App{{
		Name: name, Weight: 1, QueueLimit: 5 + rng.IntN(200), Late: serving.LatePolicy(rng.IntN(2)),
		SLO: serving.SLO{Latency: time.Duration(50+rng.IntN(400)) * time.Millisecond, Percentile: 99},
	}}}
	stages := 1 + rng.IntN(2)
	for k := range stages {
		st := serving.Stage{Name: fmt.Sprintf("%s.s%d", name, k), Joins: min(k, 1)}
		if k+1 < stages {
			st.Next = []serving.Edge{{To: serving.StageID(k + 1), FanOut: float64(1 + rng.IntN(2))}}
		}
		for m := range 1 + rng.IntN(3) {
			st.Variants = append(st.Variants, serving.VariantID(len(s.Variants)))
			s.Variants = append(s.Variants, serving.Variant{
				Name: fmt.Sprintf("%s.v%d", st.Name, m), Stage: serving.StageID(k), Accuracy: rng.Float64(),
				MaxBatch: 1 + rng.IntN(16),
			})
		}
		s.Stages = append(s.Stages, st)
		s.Apps[0].Stages = append(s.Apps[0].Stages, serving.StageID(k))
	}
	return s
}

// changes draws what happens: n apps one after the other, with queries for them and for those of the cluster.
func changes(rng *rand.Rand, c *simtest.Cluster, n int) (steps []changeStep, load []symbolic) {
	at := serving.Time(time.Second)
	for k := range n {
		name := fmt.Sprintf("f%d", k)
		app := randomApp(rng, name)
		from := at
		steps = append(steps, changeStep{at, name, func(s *serving.Spec, _ serving.AppID,
			free *serving.Free) (*serving.Spec, serving.AppID) {
			out, placed := s.WithAppsOf(app, free)
			return out, placed.Apps[0]
		}})
		for m := range rng.IntN(3) {
			at = at.Add(time.Duration(1+rng.IntN(3)) * time.Second)
			if len(app.Stages) > 1 {
				continue
			}
			v := app.Variants[0]
			v.Name = fmt.Sprintf("%s.new%d", name, m)
			steps = append(steps, changeStep{at, name, func(s *serving.Spec, a serving.AppID,
				free *serving.Free) (*serving.Spec, serving.AppID) {
				out, _ := s.WithVersion(a, app.Apps[0], v, free)
				return out, a
			}})
		}
		at = at.Add(time.Duration(1+rng.IntN(3)) * time.Second)
		steps = append(steps, changeStep{at, name, func(s *serving.Spec, a serving.AppID,
			_ *serving.Free) (*serving.Spec, serving.AppID) {
			return s.WithClosed(a), a
		}})
		to := at
		at = at.Add(time.Duration(10+rng.IntN(10)) * time.Second)
		for t := from.Add(50 * time.Millisecond); t < to.Add(time.Second); t = t.Add(
			time.Duration(5+rng.IntN(100)) * time.Millisecond) {
			a := symbolic{name, workload.Arrival{At: t, Items: 1 + rng.Int32N(3), Variant: serving.None, Sample: -1}}
			if rng.IntN(10) == 0 {
				a.Priority = 1
			}
			load = append(load, a)
		}
	}
	for t := serving.Time(0); t < at.Add(30*time.Second); t = t.Add(50 * time.Millisecond) {
		load = append(load, symbolic{"", workload.Arrival{
			At: t, App: serving.AppID(rng.IntN(len(c.Spec.Apps))), Items: 1, Variant: serving.None, Sample: -1,
		}})
	}
	slices.SortStableFunc(load, func(a, b symbolic) int { return int(a.At - b.At) })
	return steps, load
}

// run simulates, with places that are used again or not.
func (x *changing) run(s systems.System) error {
	planner, err := systems.NewOpen(plan.Known{Profile: named{x.spec}}, x.c.Spreading)
	if err != nil {
		return err
	}
	if x.e, err = s.Engine(x.spec, named{x.spec}, planner.Provides()); err != nil {
		return err
	}
	growths := make([]Growth, len(x.steps))
	for k := range growths {
		growths[k] = Growth{At: x.steps[k].at, Growth: &engine.Growth{}}
	}
	_, err = Run(Config{Spec: x.spec, Engine: x.e, Truth: x, Source: x, Initial: x.c.Plan, Planner: planner,
		PlanDelay: 3 * time.Millisecond, Growths: growths, Check: true, Limit: serving.Time(time.Hour),
		Observe: func(now serving.Time, _ []engine.Input, out []engine.Decision) {
			for k := range out {
				x.say(now, &out[k])
			}
			x.plan(growths, now)
		}})
	return err
}

// Where places in the tables are used again, every system decides as where the tables grow at their ends, but for
// numbers: nothing that was known of an app, a stage or a variant counts for the one that has its place. The tables do
// not grow with the apps that ever were.
func TestPlacesAreUsedAgain(t *testing.T) {
	routers, scalers, saved := systems.Routers(), systems.Scalers(), 0
	for seed := uint64(1); seed <= longtest.Of(uint64(10), 400); seed++ {
		var runs [2]*changing
		name := ""
		for k := range runs {
			rng := rand.New(rand.NewPCG(seed, 33))
			c := simtest.Random(rng)
			for i := range c.Spec.Stages {
				for e := range c.Spec.Stages[i].Next { // what is sent on is computed for a spec that stays
					edge := &c.Spec.Stages[i].Next[e]
					edge.FanOut = math.Round(edge.FanOut)
				}
			}
			router := routers[int(seed)%len(routers)]
			batchers := systems.BatchersFor(router)
			s := systems.System{
				Router: router, Batcher: batchers[rng.IntN(len(batchers))], Scaler: scalers[rng.IntN(len(scalers))],
			}
			s.Options.Learn = seed%3 == 0
			s.Options.Following.TurnOff = time.Duration(seed%3) * time.Second
			name = fmt.Sprintf("seed %d, %s+%s+%s", seed, s.Router, s.Batcher, s.Scaler)
			x := &changing{c: c, reuses: k == 1, spec: c.Spec, apps: make(map[string]serving.AppID)}
			x.steps, x.load = changes(rng, c, longtest.Of(4, 8))
			if err := x.run(s); err != nil {
				t.Fatalf("%s, reuses %v: %v", name, x.reuses, err)
			}
			runs[k] = x
		}
		grows, reuses := runs[0], runs[1]
		for k := range max(len(grows.said), len(reuses.said)) {
			if k >= len(grows.said) || k >= len(reuses.said) || grows.said[k] != reuses.said[k] {
				t.Fatalf("%s: decision %d of %d and %d differs:\n%s\n%s", name, k, len(grows.said), len(reuses.said),
					grows.said[min(k, len(grows.said)-1)], reuses.said[min(k, len(reuses.said)-1)])
			}
		}
		if n, most := len(reuses.spec.Apps), len(reuses.c.Spec.Apps)+2; n > most {
			t.Errorf("%s: %d apps in the tables, want at most %d: one of one stage and one of two at a time", name, n,
				most)
		}
		saved += grows.places - reuses.places
	}
	if saved == 0 {
		t.Error("no place is used again")
	}
}
