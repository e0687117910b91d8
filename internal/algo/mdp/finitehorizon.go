package mdp

import "math"

// FiniteHorizon returns the optimal policy for the first of so many decisions, and the total reward of all of them by
// state (Puterman §4.5). Rewards are not discounted, and the process ends after the last decision.
func (p *Process) FiniteHorizon(decisions int) (Policy, []float64) {
	policy, values, next, nodes := make(Policy, p.States()), make([]float64, p.States()), make([]float64, p.States()),
		p.nodes()
	for range decisions {
		p.sweep(p.expect(values, nodes), policy, next)
		values, next = next, values
	}
	return policy, values
}

// sweep takes in every state the action with the largest reward plus expected value of what comes next, the first of
// equal ones. It notes that sum in out.
func (p *Process) sweep(next []float64, policy Policy, out []float64) {
	for s := range out {
		best, at := math.Inf(-1), p.First[s]
		for a := p.First[s]; a < p.First[s+1]; a++ {
			if v := p.Reward[a] + p.Next.Dot(int(a), next); v > best {
				best, at = v, a
			}
		}
		out[s], policy[s] = best, at
	}
}
