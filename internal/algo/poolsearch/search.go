// Package poolsearch finds the best of a finite set of integer points, such as pools of so many machines of each type,
// when a point's value is expensive to learn. A search has the ask-and-tell interface: Next returns the point to
// evaluate, and the caller passes its value to Tell. So values may come from a simulation, a live system or a table.
package poolsearch

// Search evaluates the points of a Space one at a time. Its result is Space().Best(). It is not for concurrent use.
type Search struct {
	space    *Space
	strategy strategy
	asked    int // the point that Next returned and that has no value yet, or -1
}

// strategy chooses the points to evaluate.
type strategy interface {
	// next returns an open point. It is called only while there is one.
	next() int
	// observe is called when a point that next returned has been evaluated and the space pruned.
	observe(point int)
}

func newSearch(space *Space, way strategy) *Search {
	return &Search{space: space, strategy: way, asked: -1}
}

// Next returns the index of the point to be evaluated, the same one until Tell is called. ok is false when the search
// has ended: all points are evaluated or pruned, or the limit is reached.
func (s *Search) Next() (point int, ok bool) {
	if s.asked < 0 {
		if s.space.exhausted() {
			return 0, false
		}
		s.asked = s.strategy.next()
	}
	return s.asked, true
}

// Tell passes the value of the point that Next returned. It panics when Next has not been called since the last value.
// A value that is not finite means that the evaluation failed; Next does not return the point again.
func (s *Search) Tell(value float64) {
	if s.asked < 0 {
		panic("poolsearch: Tell without a point that Next has named")
	}
	point, before := s.asked, s.space.pruned
	s.asked = -1
	s.space.record(point, value)
	s.strategy.observe(point)
	s.space.trials[len(s.space.trials)-1].Pruned = s.space.pruned - before
}
