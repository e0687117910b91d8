package kairos

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
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
	free := make(machines, 0, p.Machines())
	for t, n := range p {
		for range n {
			free = append(free, machine{number: len(free), kind: t})
		}
	}
	low, high := 0, len(o.sequence)
	last := time.Duration(0)
	for low < high {
		if len(free) == 0 {
			return 0
		}
		next := &free[0]
		at := low
		switch {
		case o.base[next.kind]:
			high--
			at = high
		case o.sequence[low] < o.region[next.kind]:
			low++
		default:
			heap.Pop(&free)
			continue
		}
		next.at += o.market.Types[next.kind].Latency[o.sequence[at]]
		last = max(last, next.at)
		heap.Fix(&free, 0)
	}
	if last == 0 {
		return 0
	}
	return float64(len(o.sequence)) / last.Seconds()
}

// machine is busy until at.
type machine struct {
	at           time.Duration
	number, kind int
}

// machines is a heap: the machine that is free first, of several the one with the smallest number.
type machines []machine

func (h machines) Len() int { return len(h) }
func (h machines) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].at, h[j].at), h[i].number-h[j].number) < 0
}
func (h machines) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *machines) Push(x any)   { *h = append(*h, x.(machine)) }
func (h *machines) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
