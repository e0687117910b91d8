package nexus

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/algo/dag"
)

// Stage is one model of a query.
type Stage struct {
	Rate  float64 // items/s
	After []int   // the stages it waits for
	// Throughput is what a machine carries within a part of the objective, in items/s; 0 for nothing.
	Throughput func(within time.Duration) float64
	// Takes is the part of the objective that a stage gets which no machine is planned for; 0 for the others.
	Fixed time.Duration
}

// segments is in how many steps the objective is divided.
const budgetSteps = 100

// Split gives each stage of a query its part of the objective, so that the machines for all of them, each counted by
// the part that is used, are fewest: by dynamic programming over multiples of a step (Nexus §6.2), here on graphs that
// fork and join, too. Where a graph does not fold into chains and branches, its stages get equal parts of its longest
// path. It returns nil when some path is too long whatever is split.
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

// equal cuts the objective along the longest path.
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

// division is the program at work.
type splitter struct {
	stages []Stage
	step   time.Duration
	out    []time.Duration
}

// costs is what a part of the graph takes, in machines, within each number of steps.
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

// after adds what takes part of the time to what has the rest of it; first says how many steps it leaves to the first.
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

// spend gives the stages of a part of the graph so many steps.
func (d *splitter) assign(t *dag.Tree, n int) {
	switch t.Kind {
	case dag.Task:
		d.out[t.Task] = time.Duration(n) * d.step
	case dag.Branches:
		for _, p := range t.Children {
			d.assign(p, n)
		}
	case dag.Chain:
		// The steps of the last part are split off first.
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
