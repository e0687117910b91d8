package poolsearch

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// Evolution holds the parameters of a genetic algorithm. Kairos (§8.3) compares with one and does not give its
// parameters.
type Evolution struct {
	Population int     // parents, and children of a generation; 0 means 10
	Tournament int     // parents drawn for each of the two roles, which the best of them gets; 0 means 2
	Mutation   float64 // probability that a coordinate moves by one; 0 means one coordinate of a point on average
}

// genetic keeps the best points as parents. A child takes each coordinate from one of two parents, and some coordinates
// move by one.
type genetic struct {
	space    *Space
	rng      *rand.Rand
	with     Evolution
	random   *shuffled
	parents  []int
	children []int // evaluated in this generation
	child    []int
}

// Genetic returns the search by a genetic algorithm. The first generation is random. A child that is no open point is
// replaced by the nearest open one. So every child is evaluated for the first time, and the search ends.
func Genetic(space *Space, with Evolution, rng *rand.Rand) *Search {
	if with.Population <= 0 {
		with.Population = 10
	}
	if with.Tournament <= 0 {
		with.Tournament = 2
	}
	g := &genetic{space: space, rng: rng, with: with, random: newShuffled(space, rng)}
	if len(space.points) > 0 {
		g.child = make([]int, len(space.points[0]))
	}
	if with.Mutation <= 0 {
		g.with.Mutation = 1 / float64(max(1, len(g.child)))
	}
	return newSearch(space, g)
}

func (g *genetic) next() int {
	if len(g.parents) == 0 {
		return g.random.next()
	}
	parentA, parentB := g.space.points[g.tournament()], g.space.points[g.tournament()]
	for c := range g.child {
		g.child[c] = parentA[c]
		if g.rng.IntN(2) == 0 {
			g.child[c] = parentB[c]
		}
		if g.rng.Float64() < g.with.Mutation {
			g.child[c] += 2*g.rng.IntN(2) - 1
		}
	}
	return g.nearest()
}

// tournament draws with replacement. Parents are sorted, the best first, so that the lowest index wins.
func (g *genetic) tournament() int {
	win := len(g.parents)
	for range g.with.Tournament {
		win = min(win, g.rng.IntN(len(g.parents)))
	}
	return g.parents[win]
}

// nearest returns the open point with the smallest sum of differences to the child; among equals a random one.
func (g *genetic) nearest() int {
	at, least, ties := -1, 0, 0
	for i, p := range g.space.points {
		if !g.space.Open(i) {
			continue
		}
		away := 0
		for c := range p {
			away += max(p[c]-g.child[c], g.child[c]-p[c])
		}
		if at < 0 || away < least {
			at, least, ties = i, away, 1
		} else if away == least {
			if ties++; g.rng.IntN(ties) == 0 {
				at = i
			}
		}
	}
	return at
}

func (g *genetic) observe(point int) {
	if _, ok := g.space.Value(point); !ok {
		return
	}
	if g.children = append(g.children, point); len(g.children) < g.with.Population {
		return
	}
	g.parents = append(g.parents, g.children...)
	g.children = g.children[:0]
	slices.SortStableFunc(g.parents, func(a, b int) int { return cmp.Compare(g.space.value[b], g.space.value[a]) })
	g.parents = g.parents[:g.with.Population]
}
