package kairos

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/internal/algo/poolsearch"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// Pools whose throughput is known after one try are tried in the order of Algorithm 1, at a rate that none carries.
// Then the best serves. Where the rate is carried, the first pool that carries it stays.
func TestExperienceIsAlgorithm1(t *testing.T) {
	for seed := uint64(1); seed <= 200; seed++ {
		rng := rand.New(rand.NewPCG(seed, 8))
		m := someMarket(rng, 1+rng.IntN(3), 4)
		for k := range m.Types {
			m.Types[k].Device = serving.DeviceTypeID(k)
			m.Types[k].Price = 0.2 + 0.3*rng.Float64()
		}
		pools, err := m.Pools(1.2)
		if err != nil || len(pools) == 0 {
			continue
		}
		ranked := slices.DeleteFunc(Rank(m, NewUpper(m), pools), func(r Ranked) bool { return r.Bound <= 0 })
		if len(ranked) == 0 {
			continue
		}
		value := make([]float64, len(ranked))
		points, bounds := make([][]int, len(ranked)), make([]float64, len(ranked))
		for i, r := range ranked {
			points[i], bounds[i] = r.Pool, r.Bound
			value[i] = r.Bound * (0.5 + 0.5*rng.Float64())
		}
		space, err := poolsearch.NewSpace(points, poolsearch.PruneSubsets)
		if err != nil {
			t.Fatal(err)
		}
		search, err := poolsearch.ByUpperBound(space, bounds)
		if err != nil {
			t.Fatal(err)
		}
		n := &appRent{market: m, rate: 2 * bounds[0], explored: make([]int, len(m.Types))}
		e := &plan.Experience{Explore: true}
		for {
			want, open := search.Next()
			got := n.chooseByExperience(ranked, e)
			if !open {
				best, _, _ := space.Best()
				if !slices.Equal(got.Pool, points[best]) {
					t.Fatalf("seed %d: %v serves in the end, want %v", seed, got.Pool, points[best])
				}
				break
			}
			if !slices.Equal(got.Pool, points[want]) {
				t.Fatalf("seed %d: try %d is %v, want %v", seed, len(e.Pools), got.Pool, points[want])
			}
			search.Tell(value[want])
			e.Pools = append(e.Pools, plan.PoolTrial{
				Machines: m.machines(got.Pool, len(m.Types)), InTime: value[want], Answered: value[want],
			})
		}
		best := e.Best(n.rate)
		e.Explore = false
		if got := n.chooseByExperience(ranked, e); !slices.Equal(m.machines(got.Pool, len(m.Types)),
			e.Pools[best].Machines) {
			t.Fatalf("seed %d: without exploring %v serves, want %v", seed, got.Pool, e.Pools[best].Machines)
		}
		e.Explore, e.Pools[0].Held, n.rate = true, true, e.Pools[0].InTime
		if got := n.chooseByExperience(ranked, e); !slices.Equal(m.machines(got.Pool, len(m.Types)),
			e.Pools[0].Machines) {
			t.Fatalf("seed %d: %v serves, want the one that holds, %v", seed, got.Pool, e.Pools[0].Machines)
		}
	}
}

// A pool that held at a lower rate is no answer for a higher one, and its machines may be tried again.
func TestExperienceOfALowerRate(t *testing.T) {
	m := &Market{Types: []Type{{Name: "a", Price: 1, Max: 4}}}
	ranked := []Ranked{{Pool: Pool{3}, Bound: 30, Cost: 3}, {Pool: Pool{2}, Bound: 20, Cost: 2}}
	n := &appRent{market: m, rate: 18, explored: make([]int, 1)}
	e := &plan.Experience{Explore: true, Pools: []plan.PoolTrial{{Machines: []int{2}, Held: true, InTime: 10}}}
	if got := n.chooseByExperience(ranked, e); got.Pool[0] != 3 {
		t.Errorf("%v serves, want the one with the highest bound", got.Pool)
	}
	n.rate = 10
	if got := n.chooseByExperience(ranked, e); got.Pool[0] != 2 {
		t.Errorf("%v serves, want the one that holds", got.Pool)
	}
}
