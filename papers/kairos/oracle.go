package kairos

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/pq"
)

// Oracle is ORCL of §7: the queries/s that a pool serves when the sequence of queries is known in advance and no query
// waits for another. A free base machine takes the largest query that is left. A free auxiliary machine takes the
// smallest, unless it cannot serve that in time; then it takes no more. The throughput is the number of queries divided
// by the end of the last one, so it includes the final moments in which some machines have nothing left to do.
//
// It is a greedy schedule and no bound: taking the largest query first is not always the best use of a base machine.
type Oracle struct {
	market   *Market
	sequence []int // classes, ascending
	base     []bool
	region   []int
}

// NewOracle prepares the oracle for a sequence of queries by class, which is not kept; their order does not matter.
func NewOracle(m *Market, classes []int) *Oracle {
	o := &Oracle{market: m, sequence: slices.Sorted(slices.Values(classes))}
	for t := range m.Types {
		o.base, o.region = append(o.base, m.IsBase(t)), append(o.region, m.Region(t))
	}
	return o
}

// Quantiles returns the classes of n queries that follow the mix as closely as n queries can, ascending. They are the
// mix's quantiles.
func (m *Market) Quantiles(n int) []int {
	out := make([]int, 0, n)
	sum := 0.0
	for c := range m.Mix.Classes() {
		_, share := m.Mix.Class(c)
		sum += share
		for len(out) < n && (float64(len(out))+0.5)/float64(n) <= sum {
			out = append(out, c)
		}
	}
	for len(out) < n {
		out = append(out, m.Mix.Classes()-1) // shares may add up to a little less than 1
	}
	return out
}

// Of returns the queries/s that a pool serves; 0 when it cannot serve the whole sequence. It takes O(q log m) for q
// queries and m machines.
func (o *Oracle) Of(p Pool) float64 {
	var free pq.Heap // machines, by when they are free
	var kinds []int
	for t, n := range p {
		for range n {
			free.Set(len(kinds), 0)
			kinds = append(kinds, t)
		}
	}
	low, high := 0, len(o.sequence)
	last := time.Duration(0)
	for low < high {
		next, at, ok := free.Min()
		if !ok {
			return 0
		}
		var class int
		switch kind := kinds[next]; {
		case o.base[kind]:
			high--
			class = o.sequence[high]
		case o.sequence[low] < o.region[kind]:
			class = o.sequence[low]
			low++
		default:
			free.Remove(next)
			continue
		}
		at += int64(o.market.Types[kinds[next]].Latency[class])
		last = max(last, time.Duration(at))
		free.Set(next, at)
	}
	if last == 0 {
		return 0
	}
	return float64(len(o.sequence)) / last.Seconds()
}
