package scrooge

import (
	"time"

	"github.com/sluice-serving/sluice/algo/dag"
)

// split divides an objective over a series-parallel graph, given the curves of its modules: parts that follow each other share the
// time, parts side by side each have all of it. It is exact: the curve of a part has all of the part's best points.
type split struct {
	curve
	module int // of a leaf
	a, b   *split
	from   []pair // of the curve's points, in those of a and b
}

// empty is a part that is not there.
const empty = -1

// fold works out the curve of a tree without knots, as far as it fits into so much.
func fold(t *dag.Tree, curves []curve, within time.Duration) *split {
	switch t.Kind {
	case dag.Task:
		return &split{curve: curves[t.Task].cut(within), module: t.Task}
	case dag.Chain, dag.Branches:
		parts := make([]*split, len(t.Parts))
		// A part of a chain has what the others leave at the least.
		least := time.Duration(0)
		if t.Kind == dag.Chain {
			for _, q := range t.Parts {
				least += fastest(q, curves)
			}
		}
		for k, q := range t.Parts {
			own := time.Duration(0)
			if t.Kind == dag.Chain {
				own = fastest(q, curves)
			}
			parts[k] = fold(q, curves, within-(least-own))
		}
		for len(parts) > 1 { // in pairs, for the longest curves to be joined as late as can be
			var next []*split
			for k := 0; k < len(parts); k += 2 {
				if k+1 == len(parts) {
					next = append(next, parts[k])
					continue
				}
				s := &split{module: empty, a: parts[k], b: parts[k+1]}
				if t.Kind == dag.Chain {
					s.curve, s.from = after(s.a.curve, s.b.curve, within)
				} else {
					s.curve, s.from = beside(s.a.curve, s.b.curve)
				}
				next = append(next, s)
			}
			parts = next
		}
		return parts[0]
	}
	return &split{curve: curve{{}}, module: empty}
}

// fastest is the least latency of a tree whose modules all have one.
func fastest(t *dag.Tree, curves []curve) time.Duration {
	least := time.Duration(0)
	switch t.Kind {
	case dag.Task:
		return curves[t.Task][0].latency
	case dag.Chain:
		for _, q := range t.Parts {
			least += fastest(q, curves)
		}
	case dag.Branches:
		for _, q := range t.Parts {
			least = max(least, fastest(q, curves))
		}
	}
	return least
}

// pick notes which step of its modules' curves point k is made of.
func (s *split) pick(k int, steps []int) {
	if s.a == nil {
		if s.module != empty {
			steps[s.module] = k
		}
		return
	}
	s.a.pick(int(s.from[k].a), steps)
	s.b.pick(int(s.from[k].b), steps)
}
