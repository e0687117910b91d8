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

// folder holds the graph while it is folded. Every task is an edge from a point where it may begin to one where it has
// ended. A dependency is an edge without a task, from the end of one task to the beginning of another. Point 0 is the
// beginning of all.
type folder struct {
	edges   []edge
	in, out [][]int // by point: edges, removed ones included until the point is looked at
}

// Fold folds a graph of tasks. after[v] lists the tasks that task v waits for; it is not kept. The result is a tree of
// chains and branches for every series-parallel graph (J. Valdes, R. E. Tarjan, E. L. Lawler, "The recognition of
// series parallel digraphs", SIAM J. Comput. 11, 1982); parts that cannot be reduced become one Irreducible node. Fold
// fails when a task waits for one that does not exist, or when tasks wait for each other in a cycle.
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
	// Step 1: number the points of every task by a topological order, so that edges lead up.
	place := make([]int, n)
	for k, v := range order {
		place[v] = k
	}
	begins := func(v int) int { return 1 + 2*place[v] }
	// Step 2: add the edges of tasks and dependencies.
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
	// Step 3: reduce edges in series and in parallel until nothing changes.
	f.fold()
	return f.result(end), nil
}

// add adds an edge.
func (f *folder) add(from, to int, t *Tree) {
	f.edges = append(f.edges, edge{from: from, to: to, tree: t})
	at := len(f.edges) - 1
	f.out[from], f.in[to] = append(f.out[from], at), append(f.in[to], at)
}

// fold reduces at points until nothing changes. A point is visited again when one of its edges has changed.
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

// mergeParallel makes one edge of all edges from a point to the same other one.
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

// remaining leaves out the removed edges. It reuses the slice.
func (f *folder) remaining(edges []int) []int {
	return slices.DeleteFunc(edges, func(at int) bool { return f.edges[at].removed })
}

// result returns the tree of the folded graph: the last edge's tree, or an irreducible node of several.
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

// inSeries joins two parts that follow each other. A chain of chains is one chain.
func inSeries(a, b *Tree) *Tree {
	switch {
	case a.Kind == Empty:
		return b
	case b.Kind == Empty:
		return a
	}
	return &Tree{Kind: Chain, Children: append(flatten(a, Chain), flatten(b, Chain)...)}
}

// inParallel joins parts between the same points. A part without a task is never the longest and is left out.
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

// flatten returns the children of a node of the given kind, or the node itself.
func flatten(t *Tree, kind Kind) []*Tree {
	if t.Kind == kind {
		return slices.Clone(t.Children)
	}
	return []*Tree{t}
}

// topological returns the tasks in an order in which each waits for earlier ones only.
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
