package kairos

import (
	"cmp"
	"math"
	"slices"
)

// Bound bounds the queries/s that a pool serves in time.
type Bound interface{ Of(p Pool) float64 }

// Ranked is a pool with its bound in queries/s and its cost in $/h.
type Ranked struct {
	Pool  Pool
	Bound float64
	Cost  float64
}

// Rank returns pools from the highest bound to the lowest. Of bounds that differ by rounding only, the cheaper pool
// comes first, then the one with more machines of the first types. The results refer to the pools.
func Rank(m *Market, b Bound, pools []Pool) []Ranked {
	out := make([]Ranked, len(pools))
	keys := make([]sortKey, len(pools))
	for i, p := range pools {
		out[i] = Ranked{p, b.Of(p), m.Cost(p)}
		keys[i] = sortKey{rounded(out[i].Bound), rounded(out[i].Cost), i}
	}
	slices.SortFunc(keys, func(a, b sortKey) int {
		if a.bound != b.bound {
			return cmp.Compare(b.bound, a.bound)
		}
		if a.cost != b.cost {
			return cmp.Compare(a.cost, b.cost)
		}
		return slices.Compare(pools[b.at], pools[a.at])
	})
	sorted := make([]Ranked, len(out))
	for i, k := range keys {
		sorted[i] = out[k.at]
	}
	return sorted
}

// sortKey is the order of a pool: bound, cost, then pools[at].
type sortKey struct {
	bound, cost float64
	at          int
}

// rounded rounds to about eight digits, so that numbers that differ by rounding errors alone become equal.
func rounded(x float64) float64 {
	return math.Float64frombits((math.Float64bits(x) + 1<<25) &^ (1<<26 - 1))
}
