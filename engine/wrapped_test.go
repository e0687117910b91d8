package engine_test

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	proteusrules "github.com/sluice-serving/sluice/papers/proteus/rules"
	tidalrules "github.com/sluice-serving/sluice/papers/tidal/rules"
	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Wrappers that add something to one method and take all others from what they wrap.
type (
	wrappedRouter  struct{ route.Router }
	wrappedRule    struct{ batch.Rule }
	wrappedBatcher struct{ batch.Batcher }
	wrappedScaler  struct{ scale.Scaler }
	wrappedProfile struct{ profile.Profile }
)

func (r wrappedRule) New() batch.Batcher { return wrappedBatcher{r.Rule.New()} }

const everySection = ^plan.Sections(0)

// A wrapper around a rule keeps the rule's abilities: the engine uses no type assertion, which would not see through
// the wrapper.
func TestTraitsSurviveAWrapper(t *testing.T) {
	wakes, recalls, follows := 0, 0, 0
	for _, name := range systems.Scalers() {
		inner, err := systems.NewScaler(name, systems.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, want := wrappedScaler{inner}.Traits(), inner.Traits()
		if got != want {
			t.Errorf("scaler %q can %+v, wrapped %+v", name, want, got)
		}
		c := simtest.Uniform(1, 1e6, 1e6, time.Second, 8)
		e, err := engine.New(engine.Config{
			Spec: c.Spec, Profile: c.Profile, Router: route.NewRoundRobin(), Batcher: batch.Greedy{},
			Scaler: wrappedScaler{inner}, Provides: everySection,
		})
		if err != nil {
			t.Fatal(err)
		}
		if e.Wakes() != (want.Waker != nil) {
			t.Errorf("an engine with the wrapped scaler %q starts apps that are called: %v", name, e.Wakes())
		}
		if want.Waker != nil {
			wakes++
		}
		if want.Recaller != nil {
			recalls++
		}
		if want.Follows {
			follows++
		}
	}
	if wakes == 0 || recalls == 0 || follows == 0 {
		t.Errorf("of all scalers %d wake, %d recall and %d follow: this test has nothing to show", wakes, recalls,
			follows)
	}
	for _, router := range systems.Routers() {
		r, err := systems.NewRouter(router, systems.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, batcher := range systems.Batchers() {
			b, err := systems.NewBatcher(batcher, systems.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, want := engine.Compatible(wrappedRouter{r}, wrappedRule{b}), engine.Compatible(r, b)
			if (got == nil) != (want == nil) {
				t.Errorf("%s with %s: %v, wrapped: %v", router, batcher, want, got)
			}
		}
	}
}

// A wrapped batcher is shown its batches, and a wrapped profile learns from them.
func TestLearningSurvivesAWrapper(t *testing.T) {
	c := simtest.Uniform(1, time.Millisecond, time.Millisecond, time.Second, 8)
	e, err := engine.New(engine.Config{
		Spec: c.Spec, Profile: wrappedProfile{profile.NewLearned(c.Spec, c.Profile)}, Router: route.NewRoundRobin(),
		Batcher: wrappedRule{proteusrules.AIMD{}}, Provides: c.Planner.Provides(),
	})
	if err != nil {
		t.Fatal(err)
	}
	e.Step(1, []engine.Input{{Kind: engine.PlanReady, Plan: c.Plan}})
	e.Step(2, []engine.Input{{Kind: engine.InstanceChanged, Instance: 1}})
	before := e.Fleet().Latency(0, 0, 1, 1)
	now, id, largest := serving.Time(10), serving.QueryID(0), 0
	for range 40 {
		var in []engine.Input
		for range 8 {
			id++
			in = append(in, engine.Input{Kind: engine.QueryArrived, Query: serving.Query{
				ID: id, Arrived: now, Deadline: now.Add(time.Minute), Items: 1, Variant: serving.None,
			}})
		}
		for out := e.Step(now, in); len(out) > 0; {
			next := []engine.Input(nil)
			for _, d := range out {
				if d.Kind == engine.StartBatch {
					largest = max(largest, len(d.Tasks))
					next = append(next, engine.Input{
						Kind: engine.BatchDone, Batch: d.Batch, Instance: d.Instance, Took: 100 * time.Millisecond,
					})
				}
			}
			now = now.Add(100 * time.Millisecond)
			out = e.Step(now, next)
		}
	}
	if after := e.Fleet().Latency(0, 0, 1, 1); after == before {
		t.Errorf("a wrapped profile still believes in %v after batches of 100ms", after)
	}
	if largest < 2 {
		t.Errorf("a wrapped batcher never learned to run more than %d queries together", largest)
	}
}

// A batcher that runs the router's choice needs a router that chooses; the error names both.
func TestChoicesNeedARouterThatChooses(t *testing.T) {
	c := simtest.Uniform(1, time.Millisecond, time.Millisecond, time.Second, 8)
	build := func(r route.Router) error {
		_, err := engine.New(engine.Config{
			Spec: c.Spec, Profile: c.Profile, Router: r, Batcher: batch.AsRouted{}, Provides: everySection,
		})
		return err
	}
	if err := build(tidalrules.NewTidal()); err != nil {
		t.Errorf("a router that chooses is refused: %v", err)
	}
	want := `engine: batcher "asrouted" runs the variants that a router chooses, and router "roundrobin" chooses ` +
		`none: choose another batcher or router`
	if err := build(route.NewRoundRobin()); err == nil || err.Error() != want {
		t.Errorf("a router that chooses nothing: %v", err)
	}
}
