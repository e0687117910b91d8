package mdp

// Process is a finite decision process. In every state one of its actions is taken, which brings a reward and leads to
// another state at random.
//
// The transition may have two steps, from an action to a node and from the node to a state. If many actions share the
// second step, that saves most of the memory and of the time.
type Process struct {
	// First is by state the index of its first action. One more entry at the end is the number of actions. The actions
	// of a state have consecutive indices.
	First  []int32
	Reward []float64 // by action
	// Next is by action the distribution over nodes, or over states when Spread is nil.
	Next Rows
	// Spread is by node the distribution over states; nil for transitions of one step.
	Spread *Rows
}

// States returns the number of states.
func (p *Process) States() int { return len(p.First) - 1 }

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
