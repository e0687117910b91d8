package mdp

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// build makes a process from rows of (reward, time, probabilities) by state.
func build(states ...[][]float64) *Process {
	p := &Process{First: []int32{0}}
	for _, actions := range states {
		for _, a := range actions {
			p.Reward, p.Time = append(p.Reward, a[0]), append(p.Time, a[1])
			for s, x := range a[2:] {
				p.Next.Add(s, x)
			}
			p.Next.End()
		}
		p.First = append(p.First, int32(len(p.Reward)))
	}
	return p
}

// Howard's taxicab (Dynamic Programming and Markov Processes, 1960, chapter 5): three towns, and whether to cruise, to
// go to the nearest stand or to wait for a call. The best policy drives to the stand everywhere and brings 13.34 a
// trip.
func taxicab() *Process {
	mean := func(p, r []float64) float64 { return p[0]*r[0] + p[1]*r[1] + p[2]*r[2] }
	row := func(p, r []float64) []float64 { return append([]float64{mean(p, r), 1}, p...) }
	return build(
		[][]float64{
			row([]float64{1. / 2, 1. / 4, 1. / 4}, []float64{10, 4, 8}),
			row([]float64{1. / 16, 3. / 4, 3. / 16}, []float64{8, 2, 4}),
			row([]float64{1. / 4, 1. / 8, 5. / 8}, []float64{4, 6, 4}),
		},
		[][]float64{
			row([]float64{1. / 2, 0, 1. / 2}, []float64{14, 0, 18}),
			row([]float64{1. / 16, 7. / 8, 1. / 16}, []float64{8, 16, 8}),
		},
		[][]float64{
			row([]float64{1. / 4, 1. / 4, 1. / 2}, []float64{10, 2, 8}),
			row([]float64{1. / 8, 3. / 4, 1. / 8}, []float64{6, 4, 2}),
			row([]float64{3. / 4, 1. / 16, 3. / 16}, []float64{4, 0, 8}),
		},
	)
}

func TestTaxicab(t *testing.T) {
	p := taxicab()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	policy, average, _, err := p.PolicyIteration()
	if err != nil {
		t.Fatal(err)
	}
	want := Policy{1, 4, 6}
	for s := range want {
		if policy[s] != want[s] {
			t.Errorf("policy iteration: %v, want %v", policy, want)
		}
	}
	if math.Abs(average-13.3445) > 1e-3 {
		t.Errorf("policy iteration brings %v a trip, Howard has 13.34", average)
	}
	a := p.RelativeValueIteration(1e-9, 10000, nil)
	if a.Low > average+1e-9 || a.High < average-1e-9 || a.High-a.Low > 1e-9 {
		t.Errorf("value iteration says between %v and %v, want %v", a.Low, a.High, average)
	}
}

// A machine that works two hours for 6 and then wants either a quick repair (1 hour for 3, breaks again at once) or a
// good one (3 hours for 4). Renewal by hand: per cycle (6-3)/(2+1) = 1 an hour, or (6-4)/(2+3) = 0.4.
func TestTimesCount(t *testing.T) {
	p := build([][]float64{{6, 2, 0, 1}}, [][]float64{{-3, 1, 1, 0}, {-4, 3, 1, 0}})
	_, average, _, err := p.PolicyIteration()
	if err != nil || math.Abs(average-1) > 1e-12 {
		t.Errorf("%v an hour, want 1 (%v)", average, err)
	}
	a := p.RelativeValueIteration(1e-9, 10000, nil)
	if math.Abs(a.Low-1) > 1e-8 || math.Abs(a.High-1) > 1e-8 || a.Policy[1] != 1 {
		t.Errorf("value iteration: %+v", a)
	}
	// Over decisions instead of hours, the dearer repair never pays either, and the discounted sum is known in closed
	// form: V0 = 6 + b V1, V1 = -3 + b V0.
	policy, values := p.DiscountedValueIteration(0.9, 1e-10)
	if v := (6 - 0.9*3) / (1 - 0.81); math.Abs(values[0]-v) > 1e-8 || policy[1] != 1 {
		t.Errorf("discounted %v, want %v", values[0], v)
	}
	if _, v := p.FiniteHorizon(3); v[0] != 9 || v[1] != 0 {
		t.Errorf("three decisions bring %v, want 9 and 0", v)
	}
}

// random lets every state lead to the first with some probability, so that every policy has one recurrent class.
func random(rng *rand.Rand, states int) *Process {
	p := &Process{First: []int32{0}}
	for range states {
		for range 1 + rng.IntN(3) {
			p.Reward = append(p.Reward, rng.NormFloat64())
			p.Time = append(p.Time, 0.2+rng.Float64()*3)
			w := make([]float64, states)
			sum := 0.0
			for s := range w {
				if rng.IntN(2) == 0 || s == 0 {
					w[s] = 0.01 + rng.Float64()
				}
				sum += w[s]
			}
			for s := range w {
				p.Next.Add(s, w[s]/sum)
			}
			p.Next.End()
		}
		p.First = append(p.First, int32(len(p.Reward)))
	}
	return p
}

// spread is the same process with transitions of two steps: every action leads to nodes, every node to states.
func spread(rng *rand.Rand, states int) (two, one *Process) {
	one = random(rng, states)
	nodes := 1 + rng.IntN(2*states)
	s := &Rows{}
	for range nodes {
		w, sum := make([]float64, states), 0.0
		for k := range w {
			w[k] = rng.Float64() * float64(rng.IntN(2))
			if k == 0 {
				w[k] += 0.1
			}
			sum += w[k]
		}
		for k := range w {
			s.Add(k, w[k]/sum)
		}
		s.End()
	}
	two = &Process{First: one.First, Reward: one.Reward, Time: one.Time, Spread: s}
	flat := Rows{}
	for range one.Reward {
		w, sum := make([]float64, nodes), 0.0
		for k := range w {
			w[k] = rng.Float64()
			sum += w[k]
		}
		to := make([]float64, states)
		for k := range w {
			two.Next.Add(k, w[k]/sum)
			s.Scatter(k, w[k]/sum, to)
		}
		two.Next.End()
		for k := range to {
			flat.Add(k, to[k])
		}
		flat.End()
	}
	one.Next = flat
	return two, one
}

// Every policy of a small process is evaluated by itself: none brings more than either iteration finds.
func TestAgainstAllPolicies(t *testing.T) {
	for seed := uint64(1); seed <= 60; seed++ {
		rng := rand.New(rand.NewPCG(seed, 1))
		two, p := spread(rng, 1+rng.IntN(5))
		for _, x := range []*Process{two, p} {
			if err := x.Validate(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		best := math.Inf(-1)
		policy := make(Policy, p.States())
		var all func(s int)
		all = func(s int) {
			if s == len(policy) {
				average, _, err := p.evaluate(policy)
				if err != nil {
					t.Fatal(err)
				}
				best = max(best, average)
				return
			}
			for a := p.First[s]; a < p.First[s+1]; a++ {
				policy[s] = a
				all(s + 1)
			}
		}
		all(0)
		for name, x := range map[string]*Process{"one step": p, "two steps": two} {
			found, average, _, err := x.PolicyIteration()
			if err != nil || math.Abs(average-best) > 1e-7 {
				t.Errorf("seed %d, %s: policy iteration brings %v, the best of all policies %v (%v)", seed, name,
					average, best, err)
			}
			a := x.RelativeValueIteration(1e-8, 200000, nil)
			if a.Low > best+1e-7 || a.High < best-1e-7 || a.High-a.Low > 1e-8 {
				t.Errorf("seed %d, %s: value iteration says between %v and %v, want %v", seed, name, a.Low, a.High,
					best)
			}
			// The reward of a policy follows from its stationary distribution as well.
			share := x.Stationary(found, 0, 1e-13, 100000)
			for s, y := range x.powerIteration(found, 0, 1e-13, 100000) {
				if math.Abs(y-share[s]) > 1e-8 {
					t.Errorf("seed %d, %s: state %d has %v of the decisions, by power iteration %v", seed, name, s,
						share[s], y)
				}
			}
			reward := x.Mean(found, share, func(a int32) float64 { return x.Reward[a] })
			time := x.Mean(found, share, func(a int32) float64 { return x.Time[a] })
			if math.Abs(reward/time-best) > 1e-7 {
				t.Errorf("seed %d, %s: by the stationary distribution %v, want %v", seed, name, reward/time, best)
			}
		}
	}
}

// Discounted values against the exact solution of the policy's linear equations, by many sweeps of that policy alone.
func TestDiscounted(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		p := random(rand.New(rand.NewPCG(seed, 2)), 6)
		policy, values := p.DiscountedValueIteration(0.95, 1e-9)
		best, again := p.GreedyPolicy(values, 0.95)
		for s := range values {
			if math.Abs(values[s]-again[s]) > 1e-9 || best[s] != policy[s] {
				t.Fatalf("seed %d: state %d is worth %v, one more sweep says %v", seed, s, values[s], again[s])
			}
		}
	}
}

func TestValidate(t *testing.T) {
	for name, spoil := range map[string]func(p *Process){
		"a sum":              func(p *Process) { p.Next.weight[0] += 0.1 },
		"a column":           func(p *Process) { p.Next.column[0] = 99 },
		"a negative":         func(p *Process) { p.Next.weight[0], p.Next.weight[1] = -0.25, 1 },
		"a state without":    func(p *Process) { p.First[1] = 0 },
		"a time of nothing":  func(p *Process) { p.Time[0] = 0 },
		"a missing reward":   func(p *Process) { p.Reward = p.Reward[:3] },
		"a reward too large": func(p *Process) { p.Reward[0] = math.Inf(1) },
	} {
		p := taxicab()
		spoil(p)
		if p.Validate() == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

// The direct solution is that of the factorisation with its condition, to the last digit.
func TestSolveIsTheFactorisation(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for k := range 40 {
		n := 1 + rng.IntN(150)
		a, b := mat.NewDense(n, n, nil), mat.NewVecDense(n, nil)
		for i := range n {
			b.SetVec(i, rng.Float64())
			for j := range n {
				if rng.IntN(4) == 0 {
					a.Set(i, j, rng.Float64())
				}
			}
			if k%4 == 0 && i > 0 {
				a.SetRow(i, a.RawRowView(0)) // no unique solution
			}
		}
		var lu mat.LU
		lu.Factorize(a)
		want := mat.NewVecDense(n, nil)
		err := lu.SolveVecTo(want, false, b)
		if got := solve(a, b); (got == nil) != (err != nil) || got != nil && !mat.Equal(got, want) {
			t.Errorf("%d equations: %v, want %v, %v", n, got, want, err)
		}
	}
}
