package rules

import (
	"cmp"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/histogram"
	"github.com/sluice-serving/sluice/serving"
)

// hybridTracked is the tracked duration that INFless §3.5 gives HHP.
const hybridTracked = 4 * time.Hour

// HybridHistogram is the hybrid histogram policy (HHP; Shahrad et al., ATC 2020, §4.2). It counts an app's idle times
// in minutes, up to four hours. The app is warm from the head to the tail percentile of the histogram, with a margin of
// a tenth. While the histogram is not representative, the app stays warm for four hours. Where most idle times are
// longer than that, the app is warm around a forecast of the next one. The paper forecasts with an ARIMA model; here
// the forecast is the median of the last eight.
//
// The paper tracks idle times without an end. INFless compares with a tracked duration of four hours.
type HybridHistogram struct {
	Head, Tail float64 // quantiles in [0, 1]; 0 means 0.05 and 0.99

	seen  *histogram.Sliding
	last  [recentIdle]time.Duration
	n     int
	spans [1]Span
}

// NewHybridHistogram returns the policy with a tracked duration; 0 means four hours.
func NewHybridHistogram(tracked time.Duration) *HybridHistogram {
	return &HybridHistogram{seen: newIdle(cmp.Or(tracked, hybridTracked), 16)}
}

// Name implements KeepAlive.
func (*HybridHistogram) Name() string { return "hybridhistogram" }

// Idled implements KeepAlive.
func (h *HybridHistogram) Idled(now serving.Time, idle time.Duration) {
	h.seen.Add(int64(now), int64(idle))
	h.last[h.n%recentIdle] = idle
	h.n++
}

// Warm implements KeepAlive.
func (h *HybridHistogram) Warm(now serving.Time) []Span {
	h.seen.Advance(int64(now))
	h.spans[0] = h.window()
	return h.spans[:]
}

func (h *HybridHistogram) window() Span {
	in, out := h.seen.Inside(), h.seen.Outside()
	switch {
	case float64(out) > maxOutside*float64(in+out):
		x := h.forecast()
		return Span{scaled(x, 1-forecastMargin), scaled(x, 1+forecastMargin)}
	case !representative(h.seen):
		return Span{0, maxIdle}
	}
	from, to := headAndTail(h.seen, cmp.Or(h.Head, headQuantile), cmp.Or(h.Tail, tailQuantile))
	return Span{scaled(from, 1-margin), scaled(to, 1+margin)}
}

// forecast is the median of the last idle times.
func (h *HybridHistogram) forecast() time.Duration {
	sorted := h.last
	n := min(h.n, recentIdle)
	slices.Sort(sorted[:n])
	return sorted[n/2]
}

func scaled(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) * by) }
