package scale

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/algo/histogram"
	"github.com/sluice-serving/sluice/serving"
)

// hybridTracked is over how long INFless §3.5 has HHP look back.
const hybridTracked = 4 * time.Hour

// HybridHistogram is the hybrid histogram policy (HHP; Shahrad et al., ATC 2020, §4.2): from a histogram of an app's
// idle times in minutes up to four hours, the app is warm from their head to their tail percentile, with a margin of a
// tenth. Where the histogram says nothing, because it holds little or its counts are spread over all bins, the app
// stays warm for four hours. Where most idle times are longer than that, the next is forecast, and the app is warm
// around it: where the paper fits an ARIMA model, here it is the median of the last eight.
//
// The paper tracks idle times without an end; INFless compares with a tracked duration of four hours.
type HybridHistogram struct {
	Head, Tail float64 // percentiles as shares; 0 means 0.05 and 0.99

	seen  *histogram.Sliding
	last  [keptIdle]time.Duration
	n     int
	spans [1]Span
}

// NewHybridHistogram returns the policy with a tracked duration; 0 means four hours.
func NewHybridHistogram(tracked time.Duration) *HybridHistogram {
	return &HybridHistogram{seen: newIdle(or(tracked, hybridTracked), 16)}
}

// Name implements Keeper.
func (*HybridHistogram) Name() string { return "hybridhistogram" }

// Idled implements Keeper.
func (h *HybridHistogram) Idled(now serving.Time, idle time.Duration) {
	h.seen.Add(int64(now), int64(idle))
	h.last[h.n%keptIdle] = idle
	h.n++
}

// Warm implements Keeper.
func (h *HybridHistogram) Warm(now serving.Time) []Span {
	h.seen.Advance(int64(now))
	h.spans[0] = h.window()
	return h.spans[:]
}

func (h *HybridHistogram) window() Span {
	in, out := h.seen.Inside(), h.seen.Outside()
	switch {
	case float64(out) > unbounded*float64(in+out):
		x := h.forecast()
		return Span{scaled(x, 1-forecastMargin), scaled(x, 1+forecastMargin)}
	case !says(h.seen):
		return Span{0, reach}
	}
	from, to := ends(h.seen, share(h.Head, headAt), share(h.Tail, tailAt))
	return Span{scaled(from, 1-margin), scaled(to, 1+margin)}
}

// forecast is the median of the idle times remembered.
func (h *HybridHistogram) forecast() time.Duration {
	sorted := h.last
	n := min(h.n, keptIdle)
	slices.Sort(sorted[:n])
	return sorted[n/2]
}

func scaled(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) * by) }

func share(x, otherwise float64) float64 {
	if x > 0 {
		return x
	}
	return otherwise
}
