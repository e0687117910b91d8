package profile

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// spreadQueries is over how many queries at least a spread is taken.
const spreadQueries = 64

// Spread returns by what batches of queries whose lengths are those of a sample take longer than batches of as many
// items of the sample's mean stretch, by items-1: they do not all share a run, and pad one another where they do. A
// query has so many items in the mean, which have one length. Batches are drawn evenly from the sample, which has to be
// sorted and not empty.
func (p *ByLength) Spread(spec *serving.Spec, v serving.VariantID, d serving.DeviceTypeID, sample []int32,
	each float64) []float64 {
	x, at := &spec.Variants[v], p.Stretches.at(v, d)
	mean := 0.0
	for _, length := range sample {
		mean += p.Stretches.Factor(v, d, length) / float64(len(sample))
	}
	out, runs := []float64{1}, make([]serving.Run, 0, x.MaxBatch)
	for n := 2; len(out) < x.MaxBatch; n = min(n+1+n/4, x.MaxBatch) {
		reference, _ := p.run(v, d, n, 1)
		even := p.Stretches.stretched(at, reference, mean)
		if even >= Unknown {
			break
		}
		queries := min(max(int(float64(n)/max(each, 1)+0.5), 1), n)
		sum, sets := time.Duration(0), (spreadQueries+queries-1)/queries
		for set := range sets {
			runs = runs[:0]
			for k := range queries {
				runs = append(runs, serving.Run{
					Items: (k+1)*n/queries - k*n/queries, Length: sample[(k*sets+set)*len(sample)/(queries*sets)],
				})
			}
			for _, r := range x.Runs(runs) {
				reference, _ := p.run(v, d, r.Items, 1)
				sum += p.Stretches.Latency(v, d, reference, r.Length)
			}
		}
		last, from := out[len(out)-1], len(out)
		is := max(float64(sum)/float64(sets)/float64(max(even, 1)), 1)
		for k := from; k < n; k++ {
			out = append(out, last+(is-last)*float64(k+1-from)/float64(n-from))
		}
	}
	return out
}
