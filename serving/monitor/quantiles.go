package monitor

import (
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// quantileSizes is over how many of the last sizes quantiles are taken.
const quantileSizes = 512

// SizeQuantiles fills out with the quantiles of the sizes of an app's last queries: entry k of n is the size that the
// part (k+1)/n of them do not exceed. It returns how many entries it has filled: all, one where all sizes are 1, and
// none before a query has come.
func (r *View) SizeQuantiles(app serving.AppID, out []int32) int {
	s := &r.sizes[app]
	n := int(min(s.n, quantileSizes))
	if n == 0 || len(out) == 0 {
		return 0
	}
	if s.ring == nil {
		out[0] = 1
		return 1
	}
	r.sorted[0] = s.newest(r.sorted[0][:0], 0, n)
	slices.Sort(r.sorted[0])
	for k := range out {
		out[k] = r.sorted[0][min((k+1)*n/len(out), n-1)]
	}
	return len(out)
}
