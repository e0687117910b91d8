package scrooge

import (
	"time"

	"github.com/sluice-serving/sluice/internal/algo/dag"
)

// split divides an objective over a series-parallel graph, given the curves of its modules: parts in series share the
// time, parts in parallel each have all of it. It is exact: the curve of a part has all of its best points.
type split struct {
	costCurve
	module int   // of a leaf
	which  []int // of a leaf: the steps that the points are
	a, b   *split
	from   []stepPair // of the curve's points, in those of a and b
}

// empty is a part that is not there.
const empty = -1

// fold computes the curve of a tree without irreducible nodes, up to a latency and as far as it may be part of a better
// choice.
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
				own -= least - fastest(q, curves) // the least time of the others is taken off
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

// fastest returns the least latency of a tree whose modules all have one.
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

// pick sets steps, by module, to the steps of the modules' curves that make up point k.
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
