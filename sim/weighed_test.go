package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// What the default rule says it compared is what it does: the first choice is the batch that begins, no other has a
// higher score, and watching changes no decision.
func TestWeighingsAreWhatBegins(t *testing.T) {
	compared, late, alike, parts := 0, 0, 0, 0
	for seed := uint64(1); seed <= 30; seed++ {
		var seen [2][]string
		for watched := range 2 {
			rng := rand.New(rand.NewPCG(seed, 41))
			c := simtest.Random(rng)
			system := systems.System{Router: "priced", Batcher: "asrouted", Scaler: "fixed"}
			e, err := system.Engine(c.Spec, c.Profile, c.Planner.Provides())
			if err != nil {
				t.Fatal(err)
			}
			given := map[serving.InstanceID]route.Weighing{}
			if watched == 1 && !e.Watch(func(w *route.Weighing) {
				x := *w
				x.Choices = append([]route.Choice(nil), w.Choices...)
				given[w.Instance] = x
			}) {
				t.Fatal("the rule says nothing")
			}
			observe := func(_ serving.Time, _ []engine.Input, out []engine.Decision) {
				for k := range out {
					d := &out[k]
					seen[watched] = append(seen[watched], d.String())
					if d.Kind != engine.StartBatch || watched == 0 {
						continue
					}
					w, ok := given[d.Instance]
					if !ok {
						t.Fatalf("seed %d: a batch on instance %d was never weighed", seed, d.Instance)
					}
					switch x := w.Choices[0]; {
					case x.Variant == d.Variant && x.Queries == len(d.Tasks) && x.Items == int(d.Items):
						alike++
					case x.Stage != d.Stage || int(d.Items) > x.Items:
						t.Errorf("seed %d: %+v began, the first choice is %+v", seed, d, x)
					default:
						parts++ // some of its tasks are pinned to another variant, and run beside the others
					}
					for _, x := range w.Choices[1:] {
						if compared++; x.Score > w.Choices[0].Score {
							t.Errorf("seed %d: a choice has the score %v, the first %v", seed, x.Score,
								w.Choices[0].Score)
						}
					}
					if w.Late {
						late++
					}
				}
			}
			if _, err = Run(Config{
				Spec: c.Spec, Engine: e, Truth: believing{c.Profile}, Source: workload.FromSlice(c.Load(rng, 200)),
				Initial: c.Plan, Planner: c.Planner, Observe: observe, Limit: serving.Time(10 * time.Minute),
			}); err != nil {
				t.Fatal(err)
			}
		}
		if len(seen[0]) != len(seen[1]) {
			t.Fatalf("seed %d: %d decisions, watched %d", seed, len(seen[0]), len(seen[1]))
		}
		for k := range seen[0] {
			if seen[0][k] != seen[1][k] {
				t.Fatalf("seed %d: %s, watched %s", seed, seen[0][k], seen[1][k])
			}
		}
	}
	if compared == 0 || late == 0 || alike < 4*parts {
		t.Errorf("%d choices compared, %d batches late, %d as chosen, %d in parts", compared, late, alike, parts)
	}
}
