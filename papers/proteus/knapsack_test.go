package proteus

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The best solution is that of all counts tried one by one, no bound is below it, and every solution within the slack
// of it is visited. With a limit on the nodes the bound still holds.
func TestFilling(t *testing.T) {
	cut := 0
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 61))
		groups := 1 + rng.IntN(2)
		room := make([]int, groups)
		for g := range room {
			room[g] = 1 + rng.IntN(4)
		}
		var items []item
		for k := range 1 + rng.IntN(4) {
			g := rng.IntN(groups)
			items = append(items, item{
				pair: k, group: g, max: room[g], rate: 1 + 9*rng.Float64(), reward: rng.Float64(),
				cost: 3 * rng.Float64(),
			})
		}
		target := 25 * rng.Float64()
		slack := rng.Float64()
		// worth serves the target by the items with the largest gain.
		worth := func(counts []int) float64 {
			left, sum, used := target, 0.0, make([]bool, len(items))
			for range items {
				best := -1
				for i, x := range items {
					if !used[i] && (best < 0 || x.reward > items[best].reward) {
						best = i
					}
				}
				used[best] = true
				r := min(left, float64(counts[best])*items[best].rate)
				left -= r
				sum += r*items[best].reward - float64(counts[best])*items[best].cost
			}
			if left > 1e-9 {
				return math.Inf(-1)
			}
			return sum
		}
		best, free := math.Inf(-1), append([]int(nil), room...)
		all := make(map[[4]int]float64)
		var counts [4]int
		var try func(i int)
		try = func(i int) {
			if i == len(items) {
				if w := worth(counts[:]); !math.IsInf(w, -1) {
					all[counts] = w
					best = max(best, w)
				}
				return
			}
			for n := 0; n <= free[items[i].group]; n++ {
				counts[i] = n
				free[items[i].group] -= n
				try(i + 1)
				free[items[i].group] += n
			}
			counts[i] = 0
		}
		try(0)
		for _, nodes := range []int{1 << 20, 1 + rng.IntN(5)} {
			f := knapsack{
				items: append([]item(nil), items...), left: append([]int(nil), room...), slack: slack, nodes: nodes,
			}
			seen := make(map[[4]int]bool)
			f.visitSolution = func(taken []int, w float64) {
				var c [4]int
				for i, n := range taken {
					c[f.items[i].pair] += n
				}
				seen[c] = true
				if full := all[c]; w > full+1e-9 {
					t.Fatalf("seed %d: %v is said to be worth %v, and is %v", seed, c, w, full)
				}
			}
			f.solve(target)
			if f.upper < best-1e-9 || f.best > best+1e-9 {
				t.Fatalf("seed %d, %d nodes: found %v, bound %v; the best is %v", seed, nodes, f.best, f.upper, best)
			}
			if f.nodes < 0 {
				cut++
				continue
			}
			if f.best < best-1e-9 {
				t.Fatalf("seed %d: found %v, the best is %v", seed, f.best, best)
			}
			for c, w := range all {
				// a solution that does with a worker less is never the only one to visit
				spare := false
				for i := range items {
					if c[i] > 0 {
						d := c
						d[i]--
						_, enough := all[d]
						spare = spare || enough
					}
				}
				if w > best-slack+1e-9 && !spare && !seen[c] {
					t.Fatalf("seed %d: %v, worth %v, is within %v of %v and was not seen", seed, c, w, slack, best)
				}
			}
		}
	}
	if cut < 100 {
		t.Errorf("only %d searches were cut short", cut)
	}
}
