package serving

import (
	"cmp"
	"math"
	"slices"
)

// Run is what a model runs at once of a batch: so many items, the shorter ones padded to the length of the longest. The
// length 0 is that of queries whose length is not known.
type Run struct {
	Items  int
	Length int32
}

// RunCost is what a run of its own costs beside its elements, in items x length: operators have to start, and work
// slower on few rows. Queries are split into the runs that cost least. Lengths 100, 97, 90, 20, 5 of one item each:
//
//	one run for all               16 + 5*100                  516
//	a run for each                5*16 + 312                  392
//	100 97 90 | 20 5              2*16 + 3*100 + 2*20         372
//	100 97 | 90 | 20 5            3*16 + 2*100 + 90 + 2*20    378
//
// So padding is at most 16 for each run that it saves. A bound on its share would join long queries, and gain nothing
// (BenchmarkLengths of internal/runtime/onnx).
const RunCost = 16

// SplitRuns returns where the runs end into which padded queries are split. parts has the queries, the longest first.
func SplitRuns(parts []Run) (ends []int) {
	type plan struct {
		cost int64
		next int // where its second run begins
	}
	best := make([]plan, len(parts)+1) // by where it begins
	for from := len(parts) - 1; from >= 0; from-- {
		items := int64(0)
		best[from].cost = math.MaxInt64
		for k := from; k < len(parts); k++ {
			items += int64(parts[k].Items)
			if cost := RunCost + items*int64(parts[from].Length) + best[k+1].cost; cost < best[from].cost {
				best[from] = plan{cost, k + 1}
			}
		}
	}
	for from := 0; from < len(parts); from = best[from].next {
		ends = append(ends, best[from].next)
	}
	return ends
}

// Runs returns the runs of a batch of some queries. Those of different lengths run together where the variant pads
// them, and one after the other where it does not. It reorders parts and returns a part of their memory.
func (v *Variant) Runs(parts []Run) []Run {
	slices.SortStableFunc(parts, func(a, b Run) int { return cmp.Compare(b.Length, a.Length) })
	out := parts[:0]
	if !v.Pads {
		for _, p := range parts {
			if n := len(out); n > 0 && out[n-1].Length == p.Length {
				out[n-1].Items += p.Items
				continue
			}
			out = append(out, p)
		}
		return out
	}
	from := 0
	for _, to := range SplitRuns(parts) {
		r := parts[from]
		for _, p := range parts[from+1 : to] {
			r.Items += p.Items
		}
		out, from = append(out, r), to
	}
	return out
}
