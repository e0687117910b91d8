package kairos

import "slices"

// The number of highest bounds that the similarity rule looks at (§5.2).
const (
	agreeingPools = 3
	similarPools  = 10
)

// ChooseBySimilarity returns the index of the pool that §5.2 takes from ranked, which Rank returns, or -1 when no bound
// is above 0. If the three highest bounds have the same base machines it is the first. Otherwise it is, of the ten
// highest, the pool with the least sum of squared distances to the others: it lies in the region of high bounds. Ties
// go to the higher bound. With several base types the numbers of each must agree.
func ChooseBySimilarity(m *Market, ranked []Ranked) int {
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
			agree = agree && (!m.IsBase(t) || ranked[i].Pool[t] == ranked[0].Pool[t])
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

// BestSuperset returns the index of the pool with the highest bound that contains ranked[at], which may be that pool
// itself. It is ours: the similarity rule takes a pool from the middle of a region, and where the region consists of
// sub-configurations, as with one type of machine, it leaves money unspent. The pools in the paper's examples leave
// none.
func BestSuperset(ranked []Ranked, at int) int {
	return slices.IndexFunc(ranked, func(r Ranked) bool { return ranked[at].Pool.SubsetOf(r.Pool) })
}
