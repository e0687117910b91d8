package poolsearch

import (
	"encoding/binary"
	"fmt"
	"math"
)

// PruneRule prunes the points of s that need no evaluation now that the value of a point, given by its index, is known.
// It is called once for every finite value.
type PruneRule func(s *Space, point int, value float64)

// PruneSubsets prunes all points that are at most the evaluated one in every coordinate: fewer machines are never
// better (Kairos, Algorithm 1 and §5.2). It is right for values that do not fall in any coordinate.
func PruneSubsets(s *Space, point int, _ float64) { s.PruneBelow(point) }

// Space is a finite set of points with what a search has learned about them. One search owns it.
type Space struct {
	// Limit bounds the number of evaluations; 0 sets no limit.
	Limit int

	points [][]int
	rule   PruneRule
	index  map[string]int
	state  []state
	value  []float64 // of evaluated points; NaN when evaluating failed
	trials []Trial
	open   int
	pruned int
	best   int // -1 until a value is known
}

type state uint8

const (
	open state = iota
	evaluated
	pruned
)

// Trial is one evaluation of a point of a Space.
type Trial struct {
	Point  int     // index of the point
	Value  float64 // NaN when evaluating failed
	Pruned int     // number of points that its value pruned
}

// NewSpace returns the space of these points. It keeps the slices. Points are identified by their index. It fails when
// points differ in dimension, have a negative coordinate, or occur twice. A nil rule prunes nothing.
func NewSpace(points [][]int, rule PruneRule) (*Space, error) {
	s := &Space{
		points: points, rule: rule, index: make(map[string]int, len(points)),
		state: make([]state, len(points)), value: make([]float64, len(points)), open: len(points), best: -1,
	}
	for i, p := range points {
		if len(p) != len(points[0]) {
			return nil, fmt.Errorf("poolsearch: point %d has %d coordinates and point 0 has %d: give all the same", i,
				len(p), len(points[0]))
		}
		for c, x := range p {
			if x < 0 {
				return nil, fmt.Errorf("poolsearch: point %d has %d as coordinate %d: counts are 0 or more", i, x, c)
			}
		}
		if first, ok := s.Index(p); ok {
			return nil, fmt.Errorf("poolsearch: points %d and %d are both %v: leave one out", first, i, p)
		}
		s.index[string(key(p))] = i
	}
	return s, nil
}

// key encodes coordinates such that different points have different keys.
func key(point []int) []byte {
	out := make([]byte, 0, 16) // room for pools of usual sizes
	for _, x := range point {
		out = binary.AppendVarint(out, int64(x))
	}
	return out
}

// Index returns the index of a point; ok is false when the space does not have it.
func (s *Space) Index(point []int) (i int, ok bool) {
	i, ok = s.index[string(key(point))]
	return i, ok
}

// Points returns all points by index. They belong to the space and must not be changed.
func (s *Space) Points() [][]int { return s.points }

// Open reports whether a point, by index, is neither evaluated nor pruned.
func (s *Space) Open(i int) bool { return s.state[i] == open }

// Value returns the value of a point, by index; ok is false unless it was evaluated successfully.
func (s *Space) Value(i int) (value float64, ok bool) {
	return s.value[i], s.state[i] == evaluated && !math.IsNaN(s.value[i])
}

// Best returns the index and value of the best point so far, of equal ones the first evaluated; ok is false before the
// first value.
func (s *Space) Best() (i int, value float64, ok bool) {
	if s.best < 0 {
		return 0, 0, false
	}
	return s.best, s.value[s.best], true
}

// Trials returns all evaluations so far, failed ones included, in the order of the calls of Tell. The slice belongs to
// the space: callers must not change it, and the next evaluation may replace it.
func (s *Space) Trials() []Trial { return s.trials }

// Count returns how many points are open, evaluated and pruned. They sum to the number of points.
func (s *Space) Count() (open, evaluated, pruned int) {
	return s.open, len(s.trials), s.pruned
}

// Prune prunes a point, by index, if it is open.
func (s *Space) Prune(i int) {
	if s.state[i] == open {
		s.state[i] = pruned
		s.open--
		s.pruned++
	}
}

// PruneBelow prunes all open points that are at most point i in every coordinate, i included. It takes O(points).
func (s *Space) PruneBelow(i int) {
	for j, p := range s.points {
		if s.state[j] == open && atMost(p, s.points[i]) {
			s.Prune(j)
		}
	}
}

// PruneAbove prunes all open points that are at least point i in every coordinate, i included. It takes O(points).
func (s *Space) PruneAbove(i int) {
	for j, p := range s.points {
		if s.state[j] == open && atMost(s.points[i], p) {
			s.Prune(j)
		}
	}
}

// atMost reports whether a is at most b in every coordinate.
func atMost(a, b []int) bool {
	for c := range a {
		if a[c] > b[c] {
			return false
		}
	}
	return true
}

// exhausted reports whether no point is open or the limit is reached.
func (s *Space) exhausted() bool {
	return s.open == 0 || s.Limit > 0 && len(s.trials) >= s.Limit
}

// record keeps the value of an open point and prunes. If evaluating failed, the point is spent and proves nothing.
func (s *Space) record(i int, value float64) {
	if math.IsInf(value, 0) {
		value = math.NaN()
	}
	s.state[i], s.value[i] = evaluated, value
	s.open--
	s.trials = append(s.trials, Trial{Point: i, Value: value})
	if math.IsNaN(value) {
		return
	}
	if s.best < 0 || value > s.value[s.best] {
		s.best = i
	}
	if s.rule != nil {
		s.rule(s, i, value)
	}
}
