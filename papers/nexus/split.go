package nexus

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/dag"
)

// Stage is one model of a query.
type Stage struct {
	Rate  float64 // items/s
	After []int   // stages that it waits for
	// Throughput returns the items/s that a machine carries within a budget; 0 for none. It is not called where Fixed
	// is set.
	Throughput func(within time.Duration) float64
	// Fixed is the budget of a stage for which no machine is planned; 0 for the others.
	Fixed time.Duration
}

// budgetSteps is the number of steps into which the objective is divided.
const budgetSteps = 100

// Split returns the budget of each stage, by index, such that the fewest machines serve all of them within the
// objective. A machine counts by its used part. Stages must come in a topological order: After names earlier ones. It
// is Nexus's dynamic program over multiples of a step (§6.2), extended to graphs that fork and join. If a graph is not
// series-parallel, its stages get equal parts of the longest path. Split returns nil when no division keeps the
// objective.
func Split(stages []Stage, within time.Duration) []time.Duration {
	after := make([][]int, len(stages))
	for k := range stages {
		after[k] = stages[k].After
	}
	tree, err := dag.Fold(after)
	if err != nil || tree.Irreducibles() > 0 {
		return equalParts(stages, within)
	}
	d := splitter{stages: stages, step: within / budgetSteps, out: make([]time.Duration, len(stages))}
	costs := d.machines(tree)
	if math.IsInf(costs[budgetSteps], 1) {
		return nil
	}
	d.assign(tree, budgetSteps)
	return d.out
}

// equalParts divides the objective evenly along the longest path.
func equalParts(stages []Stage, within time.Duration) []time.Duration {
	depth, longest := make([]int, len(stages)), 1
	for k := range stages {
		depth[k] = 1
		for _, a := range stages[k].After {
			depth[k] = max(depth[k], depth[a]+1)
		}
		longest = max(longest, depth[k])
	}
	out := make([]time.Duration, len(stages))
	for k := range out {
		out[k] = within / time.Duration(longest)
		if s := &stages[k]; s.Fixed > out[k] || s.Fixed == 0 && s.Throughput(out[k]) <= 0 {
			return nil
		}
	}
	return out
}

// splitter is the dynamic program at work.
type splitter struct {
	stages []Stage
	step   time.Duration
	out    []time.Duration
}

// machines returns the machines that a part of the graph needs within each number of steps.
func (d *splitter) machines(t *dag.Tree) []float64 {
	out := make([]float64, budgetSteps+1)
	switch t.Kind {
	case dag.Task:
		s := &d.stages[t.Task]
		for n := range out {
			out[n] = math.Inf(1)
			if within := time.Duration(n) * d.step; s.Fixed > 0 {
				if within >= s.Fixed {
					out[n] = 0
				}
			} else if able := s.Throughput(within); able > 0 {
				out[n] = s.Rate / able
			}
		}
	case dag.Branches:
		for _, p := range t.Children {
			for n, c := range d.machines(p) {
				out[n] += c
			}
		}
	case dag.Chain:
		for k, p := range t.Children {
			c := d.machines(p)
			if k == 0 {
				out = c
				continue
			}
			out, _ = minPlus(out, c)
		}
	}
	return out
}

// minPlus is the (min, +) convolution: the least machines of two parts that share each number of steps. first is the
// number of steps that the first part gets then.
func minPlus(a, b []float64) (out []float64, first []int) {
	out, first = make([]float64, len(a)), make([]int, len(a))
	for n := range out {
		out[n] = math.Inf(1)
		for k := range n + 1 {
			if c := a[k] + b[n-k]; c < out[n] {
				out[n], first[n] = c, k
			}
		}
	}
	return out, first
}

// assign gives a part of the graph so many steps.
func (d *splitter) assign(t *dag.Tree, n int) {
	switch t.Kind {
	case dag.Task:
		d.out[t.Task] = time.Duration(n) * d.step
	case dag.Branches:
		for _, p := range t.Children {
			d.assign(p, n)
		}
	case dag.Chain:
		// The steps of the last child are split off first.
		sums := [][]float64{d.machines(t.Children[0])}
		var firsts [][]int
		for _, p := range t.Children[1:] {
			sum, first := minPlus(sums[len(sums)-1], d.machines(p))
			sums, firsts = append(sums, sum), append(firsts, first)
		}
		for k := len(t.Children) - 1; k > 0; k-- {
			before := firsts[k-1][n]
			d.assign(t.Children[k], n-before)
			n = before
		}
		d.assign(t.Children[0], n)
	}
}
