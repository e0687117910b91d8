package mdp

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"
)

// ErrMultichain says that under some policy the process has several recurrent classes, so that there is no single
// long-run average.
var ErrMultichain = errors.New("mdp: under some policy the process has several recurrent parts")

// evaluate returns exactly the long-run reward per unit of time of a policy, and the relative values by state: the
// solution of value + average x time = reward + expected next value in which the first state has value 0 (Puterman
// §11.4.1).
func (p *Process) evaluate(policy Policy) (average float64, values []float64, err error) {
	n := p.States()
	a, b := mat.NewDense(n, n, nil), mat.NewVecDense(n, nil)
	row, nodes := make([]float64, n), p.nodes()
	for s := range n {
		clear(row)
		one := make([]float64, n)
		one[s] = 1
		p.step(policy, one, row, nodes)
		// The first column holds the average instead of the first state's value, which is 0.
		for k := 1; k < n; k++ {
			a.Set(s, k, -row[k])
		}
		if s > 0 {
			a.Set(s, s, 1-row[s])
		}
		a.Set(s, 0, p.time(policy[s]))
		b.SetVec(s, p.Reward[policy[s]])
	}
	var lu mat.LU
	lu.Factorize(a)
	x := mat.NewVecDense(n, nil)
	if err := lu.SolveVecTo(x, false, b); err != nil {
		return 0, nil, ErrMultichain
	}
	values = make([]float64, n)
	for s := 1; s < n; s++ {
		values[s] = x.AtVec(s)
	}
	return x.AtVec(0), values, nil
}

// PolicyIteration returns an optimal policy, the largest reward per unit of time, and the relative values by state
// (Howard 1960; Puterman §8.6, §11.4.3). Every step takes cubic time in the states: it is for small processes and as a
// check on RelativeValueIteration. The error is ErrMultichain.
func (p *Process) PolicyIteration() (Policy, float64, []float64, error) {
	policy := make(Policy, p.States())
	copy(policy, p.First)
	nodes := p.nodes()
	for {
		average, values, err := p.evaluate(policy)
		if err != nil {
			return nil, 0, nil, err
		}
		after := p.expect(values, nodes)
		better := false
		for s := range policy {
			gain := func(a int32) float64 { return p.Reward[a] - average*p.time(a) + p.Next.Dot(int(a), after) }
			best := gain(policy[s])
			for a := p.First[s]; a < p.First[s+1]; a++ {
				// Only a gain beyond rounding counts: else policies of equal value would alternate for ever.
				if v := gain(a); v > best+1e-10*(1+math.Abs(best)) {
					best, policy[s], better = v, a, true
				}
			}
		}
		if !better {
			return policy, average, values, nil
		}
	}
}
