package poolsearch

import "math/rand/v2"

// Random returns the search in an order drawn at random: every next point is uniform among the open ones.
func Random(space *Space, rng *rand.Rand) *Search { return newSearch(space, newShuffled(space, rng)) }

// shuffled names open points uniformly at random. The other searches begin with it, and begin anew.
type shuffled struct {
	space *Space
	order []int
}

func newShuffled(space *Space, rng *rand.Rand) *shuffled {
	return &shuffled{space: space, order: rng.Perm(len(space.points))}
}

// next skips what was closed meanwhile: what is left of a random order is in random order.
func (r *shuffled) next() int {
	for !r.space.Open(r.order[0]) {
		r.order = r.order[1:]
	}
	return r.order[0]
}

func (r *shuffled) observe(int) {}
