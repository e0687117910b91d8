package scrooge

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/dag"
)

// graph is the modules' order as a tree. If the graph is not series-parallel, the tree is that of the graph without
// some edges; a choice that keeps the objective in the tree may break it on a path that the tree does not have.
type graph struct {
	next  [][]int
	tree  *dag.Tree
	exact bool // the tree has every path
}

// checked returns the graph of a problem that Check accepts.
func (p *Problem) checked() (*graph, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	return p.graph()
}

func (p *Problem) graph() (*graph, error) {
	g := &graph{exact: true}
	before := make([][]int, len(p.Modules))
	for i := range p.Modules {
		g.next = append(g.next, p.Modules[i].Next)
		for _, n := range p.Modules[i].Next {
			before[n] = append(before[n], i)
		}
	}
	var err error
	if g.tree, err = dag.Fold(before); err != nil {
		return nil, err
	}
	for size := irreducibleParts(g.tree); size > 0; g.exact = false {
		if before, g.tree, err = dropEdge(before); err != nil {
			return nil, err
		}
		size = irreducibleParts(g.tree)
	}
	return g, nil
}

// irreducibleParts counts the children of a tree's irreducible nodes.
func irreducibleParts(t *dag.Tree) int {
	n := 0
	if t.Kind == dag.Irreducible {
		n = len(t.Children)
	}
	for _, p := range t.Children {
		n += irreducibleParts(p)
	}
	return n
}

// dropEdge removes the edge without which the irreducible nodes have the fewest children.
func dropEdge(before [][]int) ([][]int, *dag.Tree, error) {
	var best [][]int
	var tree *dag.Tree
	for n := range before {
		for k := range before[n] {
			without := slices.Clone(before)
			without[n] = slices.Delete(slices.Clone(before[n]), k, k+1)
			t, err := dag.Fold(without)
			if err != nil {
				return nil, nil, err
			}
			if tree == nil || irreducibleParts(t) < irreducibleParts(tree) {
				best, tree = without, t
			}
		}
	}
	return best, tree, nil
}

// longestPath returns the modules of the longest path and its length, given the modules' latencies.
func (g *graph) longestPath(latency []time.Duration) ([]int, time.Duration) {
	at, from := make([]time.Duration, len(g.next)), make([]int, len(g.next))
	last, length := 0, time.Duration(-1)
	for i := range from {
		from[i] = -1
	}
	for i, next := range g.next {
		end := at[i] + latency[i]
		if end > length {
			last, length = i, end
		}
		for _, n := range next {
			if end > at[n] {
				at[n], from[n] = end, i
			}
		}
	}
	var out []int
	for i := last; i >= 0; i = from[i] {
		out = append(out, i)
	}
	slices.Reverse(out)
	return out, length
}

// maxNodes bounds the search over a graph that is not series-parallel.
const maxNodes = 1 << 12

// leastCost chooses a step of every module's curve such that the longest path keeps the objective, at the least cost.
// It visits limit nodes at most; on a series-parallel graph it needs one. bound is a cost that no choice is below: the
// cost itself, unless the search was cut short. steps is nil when nothing fits.
func (g *graph) leastCost(curves []costCurve, within time.Duration, limit int) (steps []int, cost, bound float64) {
	s := search{graph: g, curves: curves, within: within}
	all := &node{hi: make([]int, len(curves)), lo: make([]int, len(curves))}
	for i, c := range curves {
		if len(c) == 0 {
			return nil, 0, 0
		}
		all.hi[i] = len(c) - 1
	}
	if _, length := g.longestPath(s.latency(all.lo)); length > within {
		return nil, 0, 0
	}
	// Step 1: a choice to begin with. It is the best at the price of time with the tightest bound, repaired.
	all.steps = make([]int, len(curves))
	s.slope = bestSlope(g.tree, curves, within)
	relaxedCost(g.tree, s.slope, curves, all.steps)
	s.keepBetter(s.repair(all.steps))
	// Step 2: best-first branch and bound.
	if s.relax(all) {
		s.open = nodes{all}
	}
	for n := 0; len(s.open) > 0 && n < limit; n++ {
		x := heap.Pop(&s.open).(*node)
		if x.cost >= s.cost*(1-costTolerance) {
			return s.best, s.cost, s.cost
		}
		path, length := g.longestPath(s.latency(x.steps))
		if length <= within {
			s.keepBetter(x.steps)
			continue
		}
		s.keepBetter(s.repair(x.steps))
		s.branch(x, path)
	}
	bound = s.cost
	if len(s.open) > 0 {
		bound = min(bound, s.open[0].cost)
	}
	return s.best, s.cost, bound
}

// search is branch and bound over the steps that modules may take. The tree gives the least cost of any choice in a
// node. If the choice with that cost breaks the objective on a path of the graph, a module of that path must be faster
// than chosen, or stay as slow while others become faster.
type search struct {
	*graph
	curves []costCurve
	within time.Duration
	slope  float64 // the price of a second, in $/h, that gives the tightest bound
	open   nodes
	best   []int
	cost   float64
}

type node struct {
	lo, hi []int // by module: the range of steps it may take
	steps  []int
	cost   float64
}

func (s *search) latency(steps []int) []time.Duration {
	out := make([]time.Duration, len(steps))
	for i, k := range steps {
		out[i] = s.curves[i][k].latency
	}
	return out
}

// keepBetter keeps a choice if it is the cheapest so far.
func (s *search) keepBetter(steps []int) {
	cost := 0.0
	for i, k := range steps {
		cost += s.curves[i][k].cost
	}
	if s.best == nil || cost < s.cost {
		s.best, s.cost = slices.Clone(steps), cost
	}
}

// relax solves the node on the tree. It reports whether the node can contain a better choice.
func (s *search) relax(x *node) bool {
	within := make([]costCurve, len(s.curves))
	for i, c := range s.curves {
		within[i] = c[x.lo[i] : x.hi[i]+1]
	}
	if _, length := s.longestPath(s.latency(x.lo)); length > s.within {
		return false
	}
	t := fold(s.tree, within, s.within, lagrangian{base: -s.slope * s.within.Seconds(), slope: s.slope,
		bestKnown: s.cost})
	k := len(t.costCurve) - 1
	if k < 0 {
		return false
	}
	x.cost, x.steps = t.costCurve[k].cost, make([]int, len(within))
	t.pick(k, x.steps)
	for i := range x.steps {
		x.steps[i] += x.lo[i]
	}
	return x.cost < s.cost*(1-costTolerance)
}

// repair makes a choice keep the objective. While the longest path is too long, it makes a module of it faster, the one
// with the least cost per time saved. Then it makes modules slower where that saves most and there is time.
func (s *search) repair(steps []int) []int {
	steps = slices.Clone(steps)
	for {
		latency := s.latency(steps)
		path, length := s.longestPath(latency)
		if length <= s.within {
			break
		}
		module, step, best := 0, 0, math.Inf(1)
		for _, i := range path {
			for k := range steps[i] {
				saves := min(latency[i]-s.curves[i][k].latency, length-s.within)
				if pays := (s.curves[i][k].cost - s.curves[i][steps[i]].cost) / saves.Seconds(); pays < best {
					module, step, best = i, k, pays
				}
			}
		}
		steps[module] = step
	}
	for {
		latency := s.latency(steps)
		before, behind := dag.Around(s.next, latency)
		module, step, best := -1, 0, 0.0
		for i, c := range s.curves {
			k := c.at(s.within - before[i] - behind[i])
			if saves := c[steps[i]].cost - c[k].cost; saves > best {
				module, step, best = i, k, saves
			}
		}
		if module < 0 {
			return steps
		}
		steps[module] = step
	}
}

// branch divides a node at the module of the path with the largest range of faster steps.
func (s *search) branch(x *node, path []int) {
	at := slices.MaxFunc(path, func(a, b int) int { return cmp.Compare(x.steps[a]-x.lo[a], x.steps[b]-x.lo[b]) })
	if x.steps[at] == x.lo[at] {
		return // every module of the path is as fast as it may be here
	}
	middle := (x.steps[at] + x.lo[at] + 1) / 2
	faster := &node{lo: x.lo, hi: slices.Clone(x.hi)}
	faster.hi[at] = middle - 1
	slower := &node{lo: slices.Clone(x.lo), hi: x.hi}
	slower.lo[at] = middle
	for _, n := range []*node{faster, slower} {
		if s.relax(n) {
			heap.Push(&s.open, n)
		}
	}
}

type nodes []*node

func (n nodes) Len() int           { return len(n) }
func (n nodes) Less(a, b int) bool { return n[a].cost < n[b].cost }
func (n nodes) Swap(a, b int)      { n[a], n[b] = n[b], n[a] }
func (n *nodes) Push(x any)        { *n = append(*n, x.(*node)) }
func (n *nodes) Pop() any {
	old := *n
	x := old[len(old)-1]
	*n = old[:len(old)-1]
	return x
}
