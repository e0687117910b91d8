package rules

import (
	"time"

	"github.com/sluice-serving/sluice/internal/algo/histogram"
	"github.com/sluice-serving/sluice/serving"
)

// KeepAlive decides in which spans of an app's idle time some instance of it is warm, so that the next call finds no
// cold start. Idle time runs from the end of the last execution to the next call (Shahrad et al., "Serverless in the
// Wild", ATC 2020, §4.2). The literature calls the time before a span the pre-warming window and the span the
// keep-alive window. Every app has its own KeepAlive.
type KeepAlive interface {
	// Name is the rule's name in configurations.
	Name() string
	// Idled records that the app was called at now, after an idle time of idle.
	Idled(now serving.Time, idle time.Duration)
	// Warm returns the spans for an idle time that begins at now. They ascend and do not overlap. The slice is valid
	// until the next call.
	Warm(now serving.Time) []Span
	// Remember appends to b a record of the learned idle times, for Recall in a later run. A rule that learns nothing
	// appends nothing.
	Remember(b []byte, now serving.Time) []byte
	// Recall reads what Remember of the same rule with the same options wrote, older before now. It must come before
	// the first Idled. It does not keep b.
	Recall(b []byte, now serving.Time, older time.Duration) error
}

// Span is a part of an idle time. From and To count from the beginning of the idle time.
type Span struct{ From, To time.Duration }

// Constants of HHP's histograms (Shahrad et al. §4.2 and Figure 15).
const (
	binWidth     = time.Minute
	binCount     = 240 // 4 h
	headQuantile = 0.05
	tailQuantile = 0.99
	// margin is the part by which the head is shortened and the tail is lengthened.
	margin = 0.1
	// minSpread is the least coefficient of variation of the bins' counts of a representative histogram. Counts that
	// are spread evenly over the bins predict nothing.
	minSpread = 2
	// maxOutside is the largest share of idle times beyond the last bin with which the histogram is used.
	maxOutside = 0.5
	// minIdleTimes is how many idle times a representative histogram holds at least. With fewer, the coefficient of
	// variation of a single count passes minSpread by chance.
	minIdleTimes = 5
	// forecastMargin is the assumed relative error of forecasts.
	forecastMargin = 0.15
)

// maxIdle is the longest idle time that has a bin.
const maxIdle = binCount * binWidth

// recentIdle is how many of the last idle times HHP's forecast uses.
const recentIdle = 8

// newIdle returns a histogram of idle times. It covers the tracked duration and forgets one slice of it at a time.
func newIdle(tracked time.Duration, slices int) *histogram.Sliding {
	return histogram.New(int64(binWidth), binCount, int64(tracked)/int64(slices), slices)
}

// headAndTail returns two quantiles of a histogram in whole bins: the head rounded down and the tail rounded up.
func headAndTail(h *histogram.Sliding, head, tail float64) (from, to time.Duration) {
	return time.Duration(h.Quantile(head)) * binWidth, time.Duration(h.Quantile(tail)+1) * binWidth
}

// representative reports whether a histogram holds enough idle times, and is concentrated enough, to predict the next
// one (Shahrad et al. §4.2).
func representative(h *histogram.Sliding) bool {
	return h.Inside() >= minIdleTimes && h.Spread() >= minSpread
}
