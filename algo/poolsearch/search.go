// Package poolsearch finds the best of a finite set of integer points, such as pools of so many machines of each type,
// when a point's value is expensive to learn. A search asks which point to evaluate and is told its value, so that
// values may come from a simulation, from a live system or from a table.
package poolsearch

// Search asks for values one at a time. Once it has ended, the best point of its space is the answer.
type Search struct {
	space    *Space
	strategy strategy
	asked    int // the point that Next named and whose value is due, or -1
}

// strategy is what the searches differ in.
type strategy interface {
	// next names an open point. It is called only while there is one.
	next() int
	// observe hears that a point that next named has been evaluated, after the space has been pruned by its rule.
	observe(point int)
}

func newSearch(space *Space, way strategy) *Search {
	return &Search{space: space, strategy: way, asked: -1}
}

// Space returns the search's space with everything that has been learned. The search owns it.
func (s *Search) Space() *Space { return s.space }

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

// Tell gives the value of the point that Next named; it panics when there is none. A value that is not a finite number
// says that evaluating failed; the point is not asked for again.
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

// Run searches to the end with values from a function of the point's index.
func (s *Search) Run(value func(point int) float64) {
	for i, ok := s.Next(); ok; i, ok = s.Next() {
		s.Tell(value(i))
	}
}
