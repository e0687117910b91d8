package poolsearch

import (
	"math"
	"math/rand/v2"
)

// Cooling is the schedule of simulated annealing. After n evaluations the temperature is Initial * Factor^n times the
// difference of the highest and the lowest value so far, so that it suits values of any size.
type Cooling struct {
	Initial float64 // > 0; 0 means 0.3
	Factor  float64 // in (0, 1); 0 means 0.95
}

// freeMoves is how often the walk may move among points of known value before it counts as trapped.
const freeMoves = 100

// annealing walks from point to neighbour (van Laarhoven and Aarts, Simulated Annealing, 1987).
type annealing struct {
	space      *Space
	rng        *rand.Rand
	with       Cooling
	random     *shuffled
	at         int // where the walk is, or -1
	low, high  float64
	neighbours [][]int // by point, once asked for
}

// Annealing returns the search by simulated annealing. A neighbour has one machine more or less, or one of another type
// instead. A point is evaluated when the walk first considers it; later its known value is used. A pruned point is no
// neighbour any more. Its value is unknown, but at most that of an evaluated point. When all neighbours are pruned, or
// the walk stays on known points for long, it goes on from a random open point. So the search ends only when none is
// left.
func Annealing(space *Space, with Cooling, rng *rand.Rand) *Search {
	if with.Initial <= 0 {
		with.Initial = 0.3
	}
	if with.Factor <= 0 {
		with.Factor = 0.95
	}
	return newSearch(space, &annealing{
		space: space, rng: rng, with: with, random: newShuffled(space, rng), at: -1,
		low: math.Inf(1), high: math.Inf(-1), neighbours: make([][]int, len(space.points)),
	})
}

func (a *annealing) next() int {
	if a.at >= 0 {
		for range freeMoves {
			to := a.draw()
			if to < 0 {
				break
			}
			if a.space.Open(to) {
				return to
			}
			if v, _ := a.space.Value(to); a.accept(v) {
				a.at = to
			}
		}
	}
	a.at = -1
	return a.random.next()
}

// draw returns a random neighbour that is open or known, or -1.
func (a *annealing) draw() int {
	if a.neighbours[a.at] == nil {
		a.neighbours[a.at] = neighboursOf(a.space, a.at)
	}
	out, n := -1, 0
	for _, i := range a.neighbours[a.at] {
		if _, known := a.space.Value(i); known || a.space.Open(i) {
			if n++; a.rng.IntN(n) == 0 {
				out = i
			}
		}
	}
	return out
}

// accept draws whether the walk moves to a point with the given value.
func (a *annealing) accept(value float64) bool {
	here := a.space.value[a.at]
	return value >= here || a.rng.Float64() < math.Exp((value-here)/a.temperature())
}

func (a *annealing) temperature() float64 {
	return a.with.Initial * math.Pow(a.with.Factor, float64(len(a.space.trials))) * (a.high - a.low)
}

func (a *annealing) observe(point int) {
	v, ok := a.space.Value(point)
	if !ok {
		return
	}
	a.low, a.high = min(a.low, v), max(a.high, v)
	if a.at < 0 || a.accept(v) {
		a.at = point
	}
}

// neighboursOf returns the points of the space that differ from point i by one in one coordinate, or by one up in one
// coordinate and one down in another.
func neighboursOf(s *Space, i int) []int {
	p := append([]int(nil), s.points[i]...)
	out := make([]int, 0, 2*len(p)+len(p)*(len(p)-1))
	add := func() {
		if j, ok := s.Index(p); ok {
			out = append(out, j)
		}
	}
	for up := range p {
		p[up]++
		add()
		for down := range p {
			if down != up {
				p[down]--
				add()
				p[down]++
			}
		}
		p[up] -= 2
		add()
		p[up]++
	}
	return out
}
