// Package poolsearch finds the best of a finite set of integer points, such as pools of so many machines of each type,
// when learning a point's value is dear. Every search asks which point to evaluate and is told its value, so that the
// values may come from a simulation, from a live system or from a table.
package poolsearch

// Search asks for values one at a time. Once it has ended, its space's best point is the answer.
type Search struct {
	space    *Space
	strategy strategy
	asked    int // the point that Next named and Tell is due for, or -1
}

// way is what the searches differ in.
type strategy interface {
	// next names an open point. It is called only while there is one.
	next() int
	// told hears that a point that next named has been evaluated, after the space has been pruned by its rule.
	observe(point int)
}

func newSearch(space *Space, way strategy) *Search {
	return &Search{space: space, strategy: way, asked: -1}
}

// Space returns what has been learned.
func (s *Search) Space() *Space { return s.space }

// Next returns the index of the point to be evaluated, the same one until its value is told. ok is false when the
// search has ended: all points are evaluated or pruned, or the limit is reached.
func (s *Search) Next() (point int, ok bool) {
	if s.asked < 0 {
		if s.space.exhausted() {
			return 0, false
		}
		s.asked = s.strategy.next()
	}
	return s.asked, true
}

// Tell says what the point that Next named is worth. A value that is no finite number says that it could not be
// evaluated; it will not be asked for again.
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

// Run searches to the end with values from a function.
func (s *Search) Run(value func(point int) float64) {
	for i, ok := s.Next(); ok; i, ok = s.Next() {
		s.Tell(value(i))
	}
}
