package mdp

import "math"

// Stationary returns the share of decisions that a policy takes in each state in the long run, by power iteration from a
// state until a step moves less than within, or so many steps are done (Puterman App. A). Half of every step stays in place,
// so that a chain with a period settles as well.
func (p *Process) Stationary(policy Policy, from int, within float64, steps int) []float64 {
	share, next := make([]float64, p.States()), make([]float64, p.States())
	share[from] = 1
	var nodes []float64
	if p.Spread != nil {
		nodes = make([]float64, p.Spread.Len())
	}
	for range steps {
		clear(next)
		p.push(policy, share, next, nodes)
		moved := 0.0
		for s := range next {
			next[s] = (next[s] + share[s]) / 2
			moved += math.Abs(next[s] - share[s])
		}
		share, next = next, share
		if moved <= within {
			break
		}
	}
	return share
}

// push adds to next where a step of the policy leads from share.
func (p *Process) push(policy Policy, share, next, nodes []float64) {
	to := next
	if p.Spread != nil {
		clear(nodes)
		to = nodes
	}
	for s, x := range share {
		if x > 0 {
			p.Next.Scatter(int(policy[s]), x, to)
		}
	}
	if p.Spread == nil {
		return
	}
	for i, x := range nodes {
		if x > 0 {
			p.Spread.Scatter(i, x, next)
		}
	}
}

// Mean returns the mean of a quantity of actions over the decisions of a policy.
func (p *Process) Mean(policy Policy, share []float64, of func(action int32) float64) float64 {
	sum := 0.0
	for s, x := range share {
		sum += x * of(policy[s])
	}
	return sum
}
