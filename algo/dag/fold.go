package dag

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// edge is a folded part of the graph between two points.
type edge struct {
	from, to int
	tree     *Tree
	removed  bool
}

// folder holds the graph while it is folded. Every task is an edge between a point where it may begin and one where it
// has ended; a dependency is an empty edge from one task's end to another's beginning. Point 0 is the beginning of all.
type folder struct {
	edges   []edge
	in, out [][]int // of every point: edges, gone ones included until they are looked at
}

// Fold folds tasks, given those that each waits for. It finds all graphs that are series-parallel between points
// (Valdes, Tarjan and Lawler, 1982): it joins parts between the same points and parts that meet where nothing else
// does, until one is left. What is left otherwise is a knot.
func Fold(after [][]int) (*Tree, error) {
	order, err := topological(after)
	if err != nil {
		return nil, err
	}
	n := len(after)
	if n == 0 {
		return &Tree{}, nil
	}
	f := &folder{in: make([][]int, 2*n+2), out: make([][]int, 2*n+2)}
	end := 2*n + 1
	waited := make([]bool, n)
	// The points of a task are numbered by its place in the order, so that edges lead up.
	place := make([]int, n)
	for k, v := range order {
		place[v] = k
	}
	begins := func(v int) int { return 1 + 2*place[v] }
	for _, v := range order {
		f.add(begins(v), begins(v)+1, &Tree{Kind: Task, Task: v})
		for _, u := range after[v] {
			waited[u] = true
			f.add(begins(u)+1, begins(v), &Tree{})
		}
		if len(after[v]) == 0 {
			f.add(0, begins(v), &Tree{})
		}
	}
	for v := range n {
		if !waited[v] {
			f.add(begins(v)+1, end, &Tree{})
		}
	}
	f.fold()
	return f.result(end), nil
}

func (f *folder) add(from, to int, t *Tree) {
	f.edges = append(f.edges, edge{from: from, to: to, tree: t})
	at := len(f.edges) - 1
	f.out[from], f.in[to] = append(f.out[from], at), append(f.in[to], at)
}

// fold looks at points until nothing changes at any. A point is looked at again when an edge beside it changed.
func (f *folder) fold() {
	var work []int
	for p := range f.in {
		work = append(work, p)
	}
	for len(work) > 0 {
		p := work[len(work)-1]
		work = work[:len(work)-1]
		f.mergeParallel(p)
		in, out := f.remaining(f.in[p]), f.remaining(f.out[p])
		f.in[p], f.out[p] = in, out
		if len(in) != 1 || len(out) != 1 {
			continue
		}
		a, b := &f.edges[in[0]], &f.edges[out[0]]
		a.removed, b.removed = true, true
		from, to := a.from, b.to
		f.add(from, to, inSeries(a.tree, b.tree))
		work = append(work, to, from)
	}
}

// joinBranches makes one edge of those that lead from a point to the same other one.
func (f *folder) mergeParallel(p int) {
	f.out[p] = f.remaining(f.out[p])
	byEnd := make(map[int][]int)
	for _, at := range f.out[p] {
		byEnd[f.edges[at].to] = append(byEnd[f.edges[at].to], at)
	}
	for _, at := range slices.Clone(f.out[p]) {
		same := byEnd[f.edges[at].to]
		if len(same) < 2 || same[0] != at {
			continue
		}
		trees := make([]*Tree, len(same))
		for i, k := range same {
			f.edges[k].removed = true
			trees[i] = f.edges[k].tree
		}
		f.add(p, f.edges[at].to, inParallel(trees))
	}
	f.out[p] = f.remaining(f.out[p])
}

func (f *folder) remaining(edges []int) []int {
	return slices.DeleteFunc(edges, func(at int) bool { return f.edges[at].removed })
}

// rest is what all was folded into: one tree, or a knot of several.
func (f *folder) result(end int) *Tree {
	left := slices.DeleteFunc(f.edges, func(e edge) bool { return e.removed })
	if len(left) == 1 {
		return left[0].tree
	}
	slices.SortStableFunc(left, func(a, b edge) int { return cmp.Compare(a.from, b.from) })
	t := &Tree{Kind: Irreducible, points: end + 1}
	for _, e := range left {
		t.Children, t.ends = append(t.Children, e.tree), append(t.ends, [2]int{e.from, e.to})
	}
	return t
}

// chain joins two parts that follow each other. Chains in chains are one chain.
func inSeries(a, b *Tree) *Tree {
	switch {
	case a.Kind == Empty:
		return b
	case b.Kind == Empty:
		return a
	}
	return &Tree{Kind: Chain, Children: append(flatten(a, Chain), flatten(b, Chain)...)}
}

// branches joins parts between the same points; one without a task is never the longest.
func inParallel(trees []*Tree) *Tree {
	out := &Tree{Kind: Branches}
	for _, t := range trees {
		if t.Kind != Empty {
			out.Children = append(out.Children, flatten(t, Branches)...)
		}
	}
	switch len(out.Children) {
	case 0:
		return &Tree{}
	case 1:
		return out.Children[0]
	}
	return out
}

func flatten(t *Tree, kind Kind) []*Tree {
	if t.Kind == kind {
		return slices.Clone(t.Children)
	}
	return []*Tree{t}
}

// topological returns the tasks in an order in which each waits only for earlier ones.
func topological(after [][]int) ([]int, error) {
	waits, next := make([]int, len(after)), make([][]int, len(after))
	for v, before := range after {
		for _, u := range before {
			if u < 0 || u >= len(after) {
				return nil, fmt.Errorf("task %d waits for task %d, which does not exist", v, u)
			}
			waits[v]++
			next[u] = append(next[u], v)
		}
	}
	var order []int
	for v := range after {
		if waits[v] == 0 {
			order = append(order, v)
		}
	}
	for k := 0; k < len(order); k++ {
		for _, v := range next[order[k]] {
			if waits[v]--; waits[v] == 0 {
				order = append(order, v)
			}
		}
	}
	if len(order) < len(after) {
		return nil, errors.New("the tasks wait for each other in a circle")
	}
	return order, nil
}
