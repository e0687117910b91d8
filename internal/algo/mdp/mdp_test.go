package mdp

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// random lets every state lead to the first with some probability, so that every policy has one recurrent class.
func random(rng *rand.Rand, states int) *Process {
	p := &Process{First: []int32{0}}
	for range states {
		for range 1 + rng.IntN(3) {
			p.Reward = append(p.Reward, rng.NormFloat64())
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
	two = &Process{First: one.First, Reward: one.Reward, Spread: s}
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

// bestOf is the most that so many decisions bring from a state, by trying every action at each of them.
func (p *Process) bestOf(s, decisions int) float64 {
	if decisions == 0 {
		return 0
	}
	best := math.Inf(-1)
	for a := p.First[s]; a < p.First[s+1]; a++ {
		sum := p.Reward[a]
		states, weights := p.Next.Row(int(a))
		for k, to := range states {
			sum += weights[k] * p.bestOf(int(to), decisions-1)
		}
		best = max(best, sum)
	}
	return best
}

// No sequence of actions brings more than the policy, and transitions of two steps are those of one.
func TestFiniteHorizon(t *testing.T) {
	for seed := uint64(1); seed <= 60; seed++ {
		rng := rand.New(rand.NewPCG(seed, 1))
		two, one := spread(rng, 1+rng.IntN(4))
		decisions := 1 + rng.IntN(3)
		policy, values := one.FiniteHorizon(decisions)
		again, also := two.FiniteHorizon(decisions)
		if !slices.Equal(policy, again) {
			t.Errorf("seed %d: %v by one step, %v by two", seed, policy, again)
		}
		for s := range values {
			if want := one.bestOf(s, decisions); math.Abs(values[s]-want) > 1e-9 || math.Abs(also[s]-want) > 1e-9 {
				t.Errorf("seed %d: %d decisions from state %d bring %v, %v by two steps, want %v", seed, decisions, s,
					values[s], also[s], want)
			}
		}
	}
}

// One decision more does not change the stationary distribution, by elimination as by power iteration.
func TestStationary(t *testing.T) {
	for seed := uint64(1); seed <= 60; seed++ {
		two, one := spread(rand.New(rand.NewPCG(seed, 1)), 1+int(seed%5))
		policy, _ := one.FiniteHorizon(3)
		share := two.Stationary(policy, 0, 1e-13, 100000)
		next := make([]float64, two.States())
		two.step(policy, share, next, two.nodes())
		iterated := one.Stationary(policy, 0, 1e-13, 100000)
		sum := 0.0
		for s := range share {
			sum += share[s]
			if math.Abs(next[s]-share[s]) > 1e-9 || math.Abs(iterated[s]-share[s]) > 1e-8 {
				t.Errorf("seed %d: state %d has %v of the decisions, %v after one more, %v by power iteration", seed, s,
					share[s], next[s], iterated[s])
			}
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("seed %d: the shares add up to %v", seed, sum)
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
