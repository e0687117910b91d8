package scrooge_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/papers/scrooge"
)

// gaps is how far costs are above the exact ones.
type gaps []float64

func (g gaps) log(t *testing.T, name string) {
	slices.Sort(g)
	equal, within3, within5 := 0, 0, 0
	for _, x := range g {
		if x <= 1e-9 {
			equal++
		}
		if x <= 0.03 {
			within3++
		}
		if x <= 0.05 {
			within5++
		}
	}
	n := float64(len(g))
	t.Logf("%s: %d problems, %.0f %% at the least cost, %.0f %% within 3 %%, %.0f %% within 5 %%, 90th percentile "+
		"%.1f %%, largest %.1f %%", name,
		len(g), 100*float64(equal)/n, 100*float64(within3)/n, 100*float64(within5)/n, 100*g[len(g)*9/10],
		100*g[len(g)-1])
}

// Neither the paper's method nor greedy is ever below the exact one, and what they answer keeps what it promises.
func TestNeverBelowExact(t *testing.T) {
	ctx := context.Background()
	compare := func(t *testing.T, n int, draw func(seed uint64) *scrooge.Problem) {
		above := map[string]gaps{}
		methods := map[string]scrooge.Method{
			"as written": func(ctx context.Context, p *scrooge.Problem) (*scrooge.Allocation, error) {
				return scrooge.AsWritten(ctx, p, highstest.Solver(t))
			},
			"greedy": func(_ context.Context, p *scrooge.Problem) (*scrooge.Allocation, error) {
				return scrooge.Greedy(p)
			},
			"without spatial multiplexing": func(_ context.Context, p *scrooge.Problem) (*scrooge.Allocation, error) {
				p = p.Only(scrooge.OneSlot)
				a, err := scrooge.Exact(p)
				if err == nil {
					err = a.Verify(p)
				}
				return a, err
			},
		}
		none := map[string]int{}
		served := 0
		for seed := range uint64(n) {
			p := draw(seed)
			best, err := scrooge.Exact(p)
			if err != nil || best.Cost == 0 {
				continue
			}
			served++
			above["fractional program, exact above it by"] = append(above["fractional program, exact above it by"],
				best.Cost/scrooge.Bound(p)-1)
			for name, m := range methods {
				a, err := m(ctx, p)
				var no *scrooge.Infeasible
				if errors.As(err, &no) {
					none[name]++
					continue
				}
				if err != nil {
					t.Fatalf("seed %d: %s: %v", seed, name, err)
				}
				if name != "without spatial multiplexing" {
					if err := a.Verify(p); err != nil {
						t.Errorf("seed %d: %s: %v", seed, name, err)
					}
					if err := holds(p, a); err != nil {
						t.Errorf("seed %d: %s: %v", seed, name, err)
					}
				}
				if a.Cost < best.Cost*(1-1e-9) {
					t.Errorf("seed %d: %s costs %v, exact %v", seed, name, a.Cost, best.Cost)
				}
				if name != "without spatial multiplexing" && a.Bound > best.Cost*(1+1e-6) {
					t.Errorf("seed %d: %s says that nothing is below %v, exact costs %v", seed, name, a.Bound,
						best.Cost)
				}
				above[name] = append(above[name], a.Cost/best.Cost-1)
			}
		}
		for name, g := range above {
			g.log(t, name)
		}
		t.Logf("%d served; found nothing: %v", served, none)
	}
	t.Run("small", func(t *testing.T) {
		compare(t, 300, func(seed uint64) *scrooge.Problem { return scrooge.Small(rand.New(rand.NewPCG(seed, 7))) })
	})
	t.Run("figure 1", func(t *testing.T) {
		names := scrooge.Names()
		compare(t, 21, func(seed uint64) *scrooge.Problem {
			return scrooge.Many(rand.New(rand.NewPCG(seed, 30)), scrooge.Figure1[names[seed%7]], 4)
		})
	})
}

// The first program has the same optimum as an integer program and by our own search.
func TestFirstProgramBothWays(t *testing.T) {
	for seed := range uint64(60) {
		p := scrooge.Small(rand.New(rand.NewPCG(seed, 7)))
		solved, err := scrooge.AsWritten(t.Context(), p, highstest.Solver(t))
		searched, failed := scrooge.AsWritten(t.Context(), p, nil)
		if (err == nil) != (failed == nil) {
			t.Fatalf("seed %d: with a solver %v, without one %v", seed, err, failed)
		}
		if err == nil && math.Abs(solved.Bound-searched.Bound) > 1e-6*searched.Bound {
			t.Errorf("seed %d: at least %v with a solver, %v without one", seed, solved.Bound, searched.Bound)
		}
	}
}
