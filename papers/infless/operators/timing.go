package operators

import (
	"context"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
)

// Timing is a measured time in microseconds.
type Timing struct {
	Best float64 `json:"best_us"` // shortest of all runs
	// Typical is the tenth percentile: the time without disturbance. The shortest may be luck, where threads wait for
	// each other.
	Typical float64 `json:"typical_us"`
	Runs    int     `json:"runs"`
}

// Effort limits a measurement. It lasts for at least MinRuns and MinTime, and then until the shortest runs agree, which
// shows that they were undisturbed, but for at most MaxTime and MaxRuns.
type Effort struct {
	MinTime, MaxTime time.Duration
	MinRuns, MaxRuns int
}

// DefaultEffort measures most operators for a few hundredths of a second.
var DefaultEffort = Effort{MinTime: 20 * time.Millisecond, MaxTime: 400 * time.Millisecond, MinRuns: 10, MaxRuns: 5000}

// WholeEffort is for whole models.
var WholeEffort = Effort{MinTime: 80 * time.Millisecond, MaxTime: 1200 * time.Millisecond, MinRuns: 10, MaxRuns: 5000}

// The shortest runs agree when agreeingRuns of them differ by at most agreementShare.
const (
	agreeingRuns   = 4
	agreementShare = 0.02
)

// repeat runs a batch many times and returns the times in rising order. The first two runs, in which the runtime plans
// memory, do not count.
func repeat(ctx context.Context, r dataplane.Runner, b *dataplane.Batch, e Effort) ([]float64, error) {
	var all, least []float64
	began := time.Now()
	for n := -2; n < e.MaxRuns; n++ {
		if spent := time.Since(began); n >= e.MinRuns && spent >= e.MinTime {
			if spent >= e.MaxTime ||
				len(least) == agreeingRuns && least[agreeingRuns-1] <= least[0]*(1+agreementShare) {
				break
			}
		}
		start := time.Now()
		if err := r.Run(ctx, b); err != nil {
			return nil, err
		}
		if n < 0 {
			continue
		}
		us := float64(time.Since(start).Nanoseconds()) / 1e3
		all = append(all, us)
		at, _ := slices.BinarySearch(least, us)
		if at < agreeingRuns {
			least = slices.Insert(least, at, us)
			least = least[:min(len(least), agreeingRuns)]
		}
	}
	slices.Sort(all)
	return all, nil
}

// Quieter returns the less disturbed of two measurements of the same thing.
func Quieter(a, b Timing) Timing {
	return Timing{Best: min(a.Best, b.Best), Typical: min(a.Typical, b.Typical), Runs: a.Runs + b.Runs}
}

// timing summarises times, which are in rising order.
func timing(sorted []float64) Timing {
	return Timing{Best: sorted[0], Typical: sorted[len(sorted)/10], Runs: len(sorted)}
}
