package poolsearch

import "math/rand/v2"

// Random returns the search in random order: every next point is uniform among the open ones.
func Random(space *Space, rng *rand.Rand) *Search { return newSearch(space, newShuffled(space, rng)) }

// shuffled returns open points uniformly at random. The other searches use it for their first points and for new
// starts.
type shuffled struct {
	space *Space
	order []int
}

func newShuffled(space *Space, rng *rand.Rand) *shuffled {
	return &shuffled{space: space, order: rng.Perm(len(space.points))}
}

// next skips points that are no longer open. The others remain in random order.
func (r *shuffled) next() int {
	for !r.space.Open(r.order[0]) {
		r.order = r.order[1:]
	}
	return r.order[0]
}

func (r *shuffled) observe(int) {}
