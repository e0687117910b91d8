package proteus

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// For random requests, also with no demand at all at a stage behind an edge of fan-out 0, the programs are well formed,
// and a plan without a search has finite numbers.
func TestProgramsAreWellFormed(t *testing.T) {
	unreached := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		c := simtest.Random(rng)
		rates := make([]float64, len(c.Spec.Apps))
		for a := range rates {
			if rng.IntN(4) > 0 {
				rates[a] = math.Exp(8 * rng.Float64())
			}
		}
		for _, st := range c.Spec.Stages {
			for _, e := range st.Next {
				if e.FanOut == 0 {
					unreached++
				}
			}
		}
		for goal := Accuracy; goal <= Throughput; goal++ {
			p := &Planner{Profile: c.Profile, Options: Options{Goal: goal}}
			m, err := p.newProblem(plan.Request{Spec: c.Spec, Rates: rates})
			if err != nil {
				continue // a stage that nothing can serve in time
			}
			a := m.round(func(int) float64 { return 0 })
			classes, _ := m.servedProgram(m.byClass(a, 0))
			apps, _ := m.servedProgram(m.byApps(a))
			for what, err := range map[string]error{
				"free": m.build(nil).Check(), "fixed": m.build(m.fractions(a)).Check(), "classes": classes.Check(),
				"apps": apps.Check(),
			} {
				if err != nil {
					t.Fatalf("seed %d, goal %d, %s: %v", seed, goal, what, err)
				}
			}
			for what, v := range map[string]float64{"score": a.score, "mean": a.mean, "worst": a.worst} {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Fatalf("seed %d, goal %d: %s is %v", seed, goal, what, v)
				}
			}
		}
	}
	if unreached < 20 {
		t.Errorf("only %d edges of fan-out 0 in all", unreached)
	}
}

// A stage without expected items has a worker all the same, and weighs next to nothing in the accuracy.
func TestUnfedStage(t *testing.T) {
	c := simtest.Uniform(2, 5e6, 1e6, 1e9, 4)
	c.Spec.Stages[0].Next = []serving.Edge{{To: 1, FanOut: 0}}
	c.Spec.Stages = append(c.Spec.Stages, serving.Stage{Name: "rare", Variants: []serving.VariantID{0}, Joins: 1})
	c.Spec.Apps[0].Stages = []serving.StageID{0, 1}
	p := &Planner{Profile: c.Profile}
	m, err := p.newProblem(plan.Request{Spec: c.Spec, Rates: []float64{100}})
	if err != nil {
		t.Fatal(err)
	}
	a := m.round(func(int) float64 { return 0 })
	if a.served[0] != 1 || a.served[1] != 1 {
		t.Errorf("served %v, want both stages in full", a.served)
	}
	if main, rare := m.stages[0].weight*m.stages[0].demand, m.stages[1].weight*m.stages[1].demand; rare > main/1000 {
		t.Errorf("the stage that is never reached weighs %v, the other %v", rare, main)
	}
}
