package mdp

import "math"

// FiniteHorizon returns the optimal policy for the first of so many decisions, and the total reward of all of them by
// state (Puterman §4.5). Rewards are not discounted, and the process ends after the last decision. Times do not count.
func (p *Process) FiniteHorizon(decisions int) (Policy, []float64) {
	policy, values, next, nodes := make(Policy, p.States()), make([]float64, p.States()), make([]float64, p.States()),
		p.nodes()
	for range decisions {
		p.sweep(p.expect(values, nodes), 1, policy, next)
		values, next = next, values
	}
	return policy, values
}

// DiscountedValueIteration returns a policy whose discounted reward is in no state more than within below the largest
// possible, and the values it was found with (Puterman §6.3). discount is in [0, 1), per decision; times do not count.
func (p *Process) DiscountedValueIteration(discount, within float64) (Policy, []float64) {
	policy, values, next, nodes := make(Policy, p.States()), make([]float64, p.States()), make([]float64, p.States()),
		p.nodes()
	for {
		p.sweep(p.expect(values, nodes), discount, policy, next)
		moved := 0.0
		for s := range next {
			moved = max(moved, math.Abs(next[s]-values[s]))
		}
		values, next = next, values
		if moved*2*discount <= within*(1-discount) {
			return policy, values
		}
	}
}

// Average is a policy with bounds on its long-run reward per unit of time.
type Average struct {
	Policy Policy
	// Low and High enclose the largest possible reward per unit of time. The policy brings at least Low.
	Low, High float64
	Values    []float64 // relative values by state; the first is 0
	// number of sweeps over all states
	Sweeps int
}

// RelativeValueIteration returns a policy for the most reward per unit of time in the long run. It ends when Low and
// High are within so much of each other, or after so many sweeps. It iterates on the uniformised process (Schweitzer
// 1971; Puterman §8.5, §11.4). The bounds converge if every policy leads from every state to some common one. from are
// initial values by state, which are copied; nil means zeros.
func (p *Process) RelativeValueIteration(within float64, sweeps int, from []float64) *Average {
	n := p.States()
	// Uniformisation: every decision takes one step of the same length, and something happens with probability
	// step/time. A step below the shortest time keeps a share of every state in place, so that the chain is aperiodic.
	step := math.Inf(1)
	for a := range p.Reward {
		step = min(step, p.time(int32(a)))
	}
	step *= 0.95
	values, next, nodes := make([]float64, n), make([]float64, n), p.nodes()
	copy(values, from)
	out := &Average{Policy: make(Policy, n), Low: math.Inf(-1), High: math.Inf(1)}
	for out.Sweeps = 0; out.Sweeps < sweeps && !(out.High-out.Low <= within); out.Sweeps++ {
		after := p.expect(values, nodes)
		low, high := math.Inf(1), math.Inf(-1)
		for s := range n {
			best, at := math.Inf(-1), p.First[s]
			for a := p.First[s]; a < p.First[s+1]; a++ {
				// The gain of a step as a rate: the reward, and the expected change of value.
				if v := (p.Reward[a] + p.Next.Dot(int(a), after) - values[s]) / p.time(a); v > best {
					best, at = v, a
				}
			}
			out.Policy[s] = at
			next[s] = values[s] + step*best
			low, high = min(low, best), max(high, best)
		}
		base := next[0]
		for s := range next {
			next[s] -= base
		}
		values, next = next, values
		out.Low, out.High = max(out.Low, low), min(out.High, high)
	}
	out.Values = values
	return out
}
