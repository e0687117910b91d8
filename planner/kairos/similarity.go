package kairos

import "slices"

// How many of the highest bounds the similarity rule looks at (§5.2).
const (
	agreeingPools = 3
	similarPools  = 10
)

// Choose returns the position of the pool that §5.2 takes from pools ranked by bound, or -1 when no bound is above 0.
// Where the three highest bounds have the same base machines it is the first; otherwise, of the ten highest, the one
// with the least sum of squared distances to the others, which lies in the region where high bounds are. Ties go to the
// higher bound. Of several base types, the number of each must agree.
func Choose(m *Market, ranked []Ranked) int {
	n := 0
	for n < len(ranked) && n < similarPools && ranked[n].Bound > 0 {
		n++
	}
	if n == 0 {
		return -1
	}
	agree := true
	for t := range m.Types {
		for i := range min(n, agreeingPools) {
			agree = agree && (!m.Base(t) || ranked[i].Pool[t] == ranked[0].Pool[t])
		}
	}
	if agree {
		return 0
	}
	sums := make([]int, n)
	for i := range n {
		for j := range n {
			for t := range m.Types {
				d := ranked[i].Pool[t] - ranked[j].Pool[t]
				sums[i] += d * d
			}
		}
	}
	return slices.Index(sums, slices.Min(sums))
}

// Grow returns the position of the pool with the highest bound of those to which machines can be added from the pool at
// a position of ranked, which may be that itself. The similarity rule takes a pool from the middle of a region; where
// the region is its sub-configurations, as with one type of machine, that leaves money unspent for nothing. Ours: the
// paper's pools leave none.
func BestSuperset(ranked []Ranked, at int) int {
	return slices.IndexFunc(ranked, func(r Ranked) bool { return ranked[at].Pool.SubsetOf(r.Pool) })
}
