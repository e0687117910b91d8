// Package dag deconstructs a graph of tasks into chains, that run one after the other, and branches, that may run side
// by side.
//
// The rule is INFless's (§3.3, combined operator profiling): the time of a chain is the sum of its parts, that of
// branches the longest of them. It holds for whoever runs branches side by side; one that runs a task at a time takes
// the sum of all.
package dag

// Kind is what a Tree is.
type Kind int

// The kinds.
const (
	Empty       Kind = iota // nothing: a dependency without a task
	Task                    // one task
	Chain                   // parts that follow each other
	Branches                // parts between the same two points
	Irreducible             // what is left when neither is found
)

// Tree is a graph that was folded.
type Tree struct {
	Kind     Kind
	Task     int // of a Task
	Children []*Tree
	// ends has the points that the parts of a Knot lie between. They are numbered in an order in which every part leads
	// up.
	ends   [][2]int
	points int
}

// Sequential is the time of all tasks, one after the other.
func (t *Tree) Sequential(time []float64) float64 {
	if t.Kind == Task {
		return time[t.Task]
	}
	sum := 0.0
	for _, p := range t.Children {
		sum += p.Sequential(time)
	}
	return sum
}

// Parallel is the time when branches run side by side and never wait for a processor: chains add up, the longest branch
// counts, and in a knot the longest path.
func (t *Tree) Parallel(time []float64) float64 {
	switch t.Kind {
	case Task:
		return time[t.Task]
	case Chain:
		sum := 0.0
		for _, p := range t.Children {
			sum += p.Parallel(time)
		}
		return sum
	case Branches:
		longest := 0.0
		for _, p := range t.Children {
			longest = max(longest, p.Parallel(time))
		}
		return longest
	case Irreducible:
		at := make([]float64, t.points)
		for i, p := range t.Children {
			from, to := t.ends[i][0], t.ends[i][1]
			at[to] = max(at[to], at[from]+p.Parallel(time))
		}
		return at[t.points-1]
	}
	return 0
}

// Knots counts what could not be folded.
func (t *Tree) Irreducibles() int {
	n := 0
	if t.Kind == Irreducible {
		n = 1
	}
	for _, p := range t.Children {
		n += p.Irreducibles()
	}
	return n
}
