package test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/papers/proteus"
	"github.com/sluice-serving/sluice/policy/plan"
)

// cancellingSolver is a solver that ends the context after so many solves, as the timeout of a data plane does.
type cancellingSolver struct {
	milp.Solver
	left   int
	enough context.CancelFunc
}

func (s *cancellingSolver) Solve(ctx context.Context, p *milp.Program, l milp.Limits) (*milp.Solution, error) {
	if s.left == 0 {
		s.enough()
	}
	s.left--
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return s.Solver.Solve(ctx, p, l)
}

// relaxing only solves relaxed programs: what comes of it is the planner's own rounding.
type relaxing struct{ milp.Solver }

func (s relaxing) Solve(ctx context.Context, p *milp.Program, l milp.Limits) (*milp.Solution, error) {
	if !l.Relax {
		return &milp.Solution{Status: milp.NoSolution}, nil
	}
	return s.Solver.Solve(ctx, p, l)
}

// Whenever the context ends there is a plan, for any goal, that claims no more than it proves.
func TestProteusAnytime(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 41))
		w := randomPlanWorld(rng, 1+rng.IntN(3), 4+rng.IntN(8), 1+rng.IntN(4))
		for a := range w.spec.Apps {
			w.spec.Apps[a].Weight = float64(1 + rng.IntN(2))
		}
		r := plan.Request{Spec: w.spec, Rates: w.demands(rng, 0.2+1.2*rng.Float64())}
		for solves := range 6 {
			ctx, cancel := context.WithCancel(t.Context())
			s := &cancellingSolver{highstest.Solver(t), solves, cancel}
			p := &proteus.Planner{Profile: w.profile, Solver: s, Options: proteus.Options{Goal: proteus.Goal(seed % 4)}}
			if rng.IntN(2) == 0 {
				p.Options.Slack = -1
			}
			got, err := p.Plan(ctx, r)
			cancel()
			at := fmt.Sprintf("seed %d, ended after %d solves", seed, solves)
			if err == nil {
				err = got.Validate(w.spec)
			}
			if err != nil {
				t.Fatalf("%s: %v", at, err)
			}
			p.Options.Headroom = 1.05
			checkPlan(t, at, r, p, got)
			if solves == 0 && got.Proven {
				t.Fatalf("%s: proven without a solve", at)
			}
		}
	}
}

// Plans from rounding alone leave out no more than a quarter of any app where everything can be served, and where they
// leave out nothing are within 15 % of the best accuracy.
func TestProteusRounding(t *testing.T) {
	carried, lost, lack, worst, sum := 0, 0, 0.0, 0.0, 0.0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 42))
		w := randomPlanWorld(rng, 1+rng.IntN(3), 5+rng.IntN(20), 1+rng.IntN(5))
		demand := w.demands(rng, 0.2+0.75*rng.Float64())
		r := plan.Request{Spec: w.spec, Rates: demand}
		p := &proteus.Planner{Profile: w.profile, Solver: highstest.Solver(t), Options: exactly()}
		p.Options.Gap = 0.001
		at := fmt.Sprint("seed ", seed)
		best := planned(t, at, p, r)
		p.Solver = relaxing{p.Solver}
		rounded := planned(t, at, p, r)
		if best.Shed != nil {
			continue
		}
		carried++
		if rounded.Shed != nil {
			lost++
			for a := range demand {
				if part := rounded.Shed[a] / demand[a]; part > 0.25 {
					t.Errorf("seed %d: rounding leaves out %v of app %d, the search nothing", seed, part, a)
				}
				lack = max(lack, rounded.Shed[a]/demand[a])
			}
			continue
		}
		value := func(p *plan.Plan) float64 {
			values := accuracies(w.spec, p)
			for a := range values {
				values[a] *= demand[a]
			}
			return w.mean(values, demand)
		}
		loss := 1 - value(rounded)/value(best)
		worst = max(worst, loss)
		sum += loss
		if loss > 0.15 {
			t.Errorf("seed %d: rounding has %v, the search %v", seed, value(rounded), value(best))
		}
	}
	t.Logf("%d demands that can be carried; rounding sheds %.2f %% at most in %d, and loses %.2f %% of the accuracy "+
		"of the others, %.2f %% at most", carried, 100*lack, lost, 100*sum/float64(carried-lost), 100*worst)
	if carried < 60 || lost > carried/5 {
		t.Errorf("%d demands can be carried, rounding alone sheds some of %d", carried, lost)
	}
}
