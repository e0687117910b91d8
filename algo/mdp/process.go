package mdp

import (
	"errors"
	"fmt"
	"math"
)

// Process is a finite decision process. In every state one of its actions is taken, which brings a reward, takes a
// time, and leads to another state at random.
//
// The transition may have two steps, from an action to a node and from the node to a state. If many actions share the
// second step, that saves most of the memory and of the time.
type Process struct {
	// First is by state the index of its first action. One more entry at the end is the number of actions. The actions
	// of a state have consecutive indices.
	First []int32
	// Reward is by action. Time is by action, above 0; nil means that every action takes one unit of time.
	Reward, Time []float64
	// Next is by action the distribution over nodes, or over states when Spread is nil.
	Next Rows
	// Spread is by node the distribution over states; nil for transitions of one step.
	Spread *Rows
}

// States returns the number of states.
func (p *Process) States() int { return len(p.First) - 1 }

// Actions returns the number of actions of all states together.
func (p *Process) Actions() int { return len(p.Reward) }

// tolerance is how far the sum of a distribution may be from 1.
const tolerance = 1e-9

// Validate reports the first error in p's tables. The other methods assume that there is none.
func (p *Process) Validate() error {
	if len(p.First) < 2 || p.First[0] != 0 || int(p.First[len(p.First)-1]) != len(p.Reward) {
		return errors.New(
			"mdp: the first action of the first state is 0, and the last entry of First is the number of actions")
	}
	for s := range p.States() {
		if p.First[s] >= p.First[s+1] {
			return fmt.Errorf("mdp: state %d has no action", s)
		}
	}
	if p.Next.Len() != len(p.Reward) || p.Time != nil && len(p.Time) != len(p.Reward) {
		return fmt.Errorf("mdp: %d rewards, %d times and %d rows", len(p.Reward), len(p.Time), p.Next.Len())
	}
	check := func(what string, r *Rows, columns int) error {
		for i := range r.Len() {
			at, w := r.Row(i)
			sum := 0.0
			for k := range at {
				if at[k] < 0 || int(at[k]) >= columns || !(w[k] >= 0) {
					return fmt.Errorf("mdp: %s %d leads to %d of %d with probability %v", what, i, at[k], columns, w[k])
				}
				sum += w[k]
			}
			if math.Abs(sum-1) > tolerance {
				return fmt.Errorf("mdp: the probabilities of %s %d add up to %v", what, i, sum)
			}
		}
		return nil
	}
	nodes := p.States()
	if p.Spread != nil {
		nodes = p.Spread.Len()
		if err := check("node", p.Spread, p.States()); err != nil {
			return err
		}
	}
	if err := check("action", &p.Next, nodes); err != nil {
		return err
	}
	for a, r := range p.Reward {
		if math.IsNaN(r) || math.IsInf(r, 0) || p.Time != nil && !(p.Time[a] > 0 && !math.IsInf(p.Time[a], 0)) {
			return fmt.Errorf("mdp: action %d brings %v", a, r)
		}
	}
	return nil
}

func (p *Process) time(a int32) float64 {
	if p.Time == nil {
		return 1
	}
	return p.Time[a]
}

// expect returns by node the expected value of the next state, in the memory of nodes. Without Spread it returns
// values.
func (p *Process) expect(values, nodes []float64) []float64 {
	if p.Spread == nil {
		return values
	}
	for i := range nodes {
		nodes[i] = p.Spread.Dot(i, values)
	}
	return nodes
}

func (p *Process) nodes() []float64 {
	if p.Spread == nil {
		return nil
	}
	return make([]float64, p.Spread.Len())
}

// Policy is by state the index of the action to take.
type Policy []int32

// GreedyPolicy returns in every state the action with the largest reward plus discounted expected value of the next
// state, the first of equal ones. It also returns that sum, by state.
func (p *Process) GreedyPolicy(values []float64, discount float64) (Policy, []float64) {
	policy, out := make(Policy, p.States()), make([]float64, p.States())
	p.sweep(p.expect(values, p.nodes()), discount, policy, out)
	return policy, out
}

func (p *Process) sweep(next []float64, discount float64, policy Policy, out []float64) {
	for s := range out {
		best, at := math.Inf(-1), p.First[s]
		for a := p.First[s]; a < p.First[s+1]; a++ {
			if v := p.Reward[a] + discount*p.Next.Dot(int(a), next); v > best {
				best, at = v, a
			}
		}
		out[s], policy[s] = best, at
	}
}
