package scrooge

import (
	"time"

	"github.com/sluice-serving/sluice/algo/dag"
)

// split divides an objective over a series-parallel graph, given the curves of its modules: parts that follow each
// other share the time, parts side by side each have all of it. It is exact: the curve of a part has all of the part's
// best points.
type split struct {
	costCurve
	module int   // of a leaf
	which  []int // of a leaf: the steps that the points are
	a, b   *split
	from   []stepPair // of the curve's points, in those of a and b
}

// empty is a part that is not there.
const empty = -1

// fold works out the curve of a tree without knots, as far as it fits into so much and may be part of something better
// than what is known.
func fold(t *dag.Tree, curves []costCurve, within time.Duration, o lagrangian) *split {
	switch t.Kind {
	case dag.Task:
		s := &split{module: t.Task}
		s.costCurve, s.which = o.keep(curves[t.Task].cut(within))
		return s
	case dag.Chain, dag.Branches:
		least := time.Duration(0)
		if t.Kind == dag.Chain {
			least = fastest(t, curves)
		}
		var whole *split
		for k, q := range t.Children {
			own := within
			if t.Kind == dag.Chain {
				own -= least - fastest(q, curves) // what the others leave at the least
			}
			part := fold(q, curves, own, o.of(t, k, curves))
			if whole == nil {
				whole = part
				continue
			}
			s := &split{module: empty, a: whole, b: part}
			if t.Kind == dag.Chain {
				s.costCurve, s.from = inSeries(whole.costCurve, part.costCurve, within, o.first(t, k+1, curves))
			} else {
				s.costCurve, s.from = inParallel(whole.costCurve, part.costCurve)
			}
			whole = s
		}
		return whole
	}
	return &split{costCurve: costCurve{{}}, module: empty}
}

// fastest is the least latency of a tree whose modules all have one.
func fastest(t *dag.Tree, curves []costCurve) time.Duration {
	least := time.Duration(0)
	switch t.Kind {
	case dag.Task:
		return curves[t.Task][0].latency
	case dag.Chain:
		for _, q := range t.Children {
			least += fastest(q, curves)
		}
	case dag.Branches:
		for _, q := range t.Children {
			least = max(least, fastest(q, curves))
		}
	}
	return least
}

// pick notes which step of its modules' curves point k is made of.
func (s *split) pick(k int, steps []int) {
	if s.a == nil {
		if s.module != empty {
			steps[s.module] = s.which[k]
		}
		return
	}
	s.a.pick(int(s.from[k].a), steps)
	s.b.pick(int(s.from[k].b), steps)
}
