package poolsearch

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// byUpperBound is KAIROS+ (Kairos, Algorithm 1): it evaluates the point with the highest upper bound first. When a
// better value is found, all points whose bound is not above it are pruned.
type byUpperBound struct {
	space  *Space
	bounds []float64
	order  []int // points, highest bound first
}

// ByUpperBound returns the search by an upper bound for every point's value, by point index. It finds the best point if
// the bounds hold and the space's pruning rule is right. Equal bounds are taken in the order of the points. bounds is
// kept. It fails when a point has no bound or a bound is NaN; use +Inf for one that is not known.
func ByUpperBound(space *Space, bounds []float64) (*Search, error) {
	if len(bounds) != len(space.points) {
		return nil, fmt.Errorf("poolsearch: %d bounds for %d points: give each point one", len(bounds),
			len(space.points))
	}
	b := &byUpperBound{space: space, bounds: bounds, order: make([]int, len(bounds))}
	for i, v := range bounds {
		if math.IsNaN(v) {
			return nil, fmt.Errorf("poolsearch: the bound of point %d is no number: use +Inf for one that is not known",
				i)
		}
		b.order[i] = i
	}
	slices.SortStableFunc(b.order, func(i, j int) int { return cmp.Compare(bounds[j], bounds[i]) })
	return newSearch(space, b), nil
}

func (b *byUpperBound) next() int {
	for !b.space.Open(b.order[0]) {
		b.order = b.order[1:]
	}
	return b.order[0]
}

func (b *byUpperBound) observe(point int) {
	best, value, ok := b.space.Best()
	if !ok || best != point {
		return
	}
	for _, i := range b.order {
		if b.bounds[i] <= value {
			b.space.Prune(i)
		}
	}
}
