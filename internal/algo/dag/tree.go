// Package dag decomposes a graph of tasks into chains, which run one after the other, and branches, which may run side
// by side, and finds longest paths.
//
// By INFless's rule (ASPLOS 2022, §3.3, combined operator profiling) a chain takes the sum of its parts and branches
// take the longest of them. That holds for executors that run branches side by side. One that runs a task at a time
// takes the sum of all.
package dag

// Kind is the kind of a Tree node.
type Kind int

// The kinds.
const (
	Empty       Kind = iota // no task: a dependency
	Task                    // one task
	Chain                   // children that follow each other
	Branches                // children between the same two points
	Irreducible             // children between points that neither series nor parallel reduction joins
)

// Tree is a folded graph. It is not changed once made.
type Tree struct {
	Kind Kind
	Task int // index of the task, of a Task node only
	// Children are the parts of any other node.
	Children []*Tree
	// ends are the points that the children of an Irreducible node lie between. Points are numbered such that every
	// child leads up.
	ends   [][2]int
	points int
}

// Sequential returns the time of an executor that runs the tasks of t one after the other: the sum over all tasks. time
// is by task, in any unit; it must have an entry for every task of the graph and is not changed.
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

// Parallel returns the time of an executor that runs branches side by side and has a processor for every task. Chains
// add up, of branches the longest counts, and in an irreducible part the longest path. time is as for Sequential.
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

// Irreducibles counts the irreducible nodes.
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
