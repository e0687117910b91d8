package scale

import (
	"time"

	"github.com/sluice-serving/sluice/algo/histogram"
	"github.com/sluice-serving/sluice/serving"
)

// Keeper decides how an app that has nothing to do is kept from a cold start: in which spans of its idle time something
// of it is warm. Idle time runs from the end of the last execution to the next call (Shahrad et al., "Serverless in the
// Wild", ATC 2020, §4.2). The pre-warming window of the literature is the time before a span, the keep-alive window the
// span. Every app has its own.
type Keeper interface {
	// Name is the rule's name in configurations.
	Name() string
	// Idled tells that the app was called at now, when it had had nothing to do for idle.
	Idled(now serving.Time, idle time.Duration)
	// Warm returns the spans for an idle time that begins at now: ascending and apart. They are valid until the next
	// call.
	Warm(now serving.Time) []Span
	// Remember appends to b what was learned by now, so that a server that begins anew need not learn it again. A rule
	// that learns nothing appends nothing.
	Remember(b []byte, now serving.Time) []byte
	// Recall takes up what a rule of the same kind and options remembered the time older ago, before this one has
	// learned anything itself.
	Recall(b []byte, now serving.Time, older time.Duration) error
}

// Span is a part of an idle time, counted from its beginning.
type Span struct{ From, To time.Duration }

// Of HHP's histograms (Shahrad et al. §4.2 and Figure 15).
const (
	binWidth = time.Minute
	binCount = 240 // four hours
	headAt   = 0.05
	tailAt   = 0.99
	// margin is by how much the head is taken earlier and the tail later.
	margin = 0.1
	// crowded is the coefficient of variation of the bins' counts below which a histogram says nothing.
	crowded = 2
	// unbounded is the share of idle times out of bounds above which the histogram is of no use.
	unbounded = 0.5
	// fewest idle times that a histogram says something with: the coefficient of variation of one count is at its
	// largest.
	fewest = 5
	// forecasts are off by less than this, it is hoped.
	forecastMargin = 0.15
)

// reach is the longest idle time that the histograms tell apart.
const reach = binCount * binWidth

// keptIdle is how many idle times of an app that is mostly called at longer intervals are remembered.
const keptIdle = 8

// newIdle returns a histogram of the idle times of a tracked duration, forgotten a slice of it at once.
func newIdle(tracked time.Duration, slices int) *histogram.Sliding {
	return histogram.New(int64(binWidth), binCount, int64(tracked)/int64(slices), slices)
}

// ends are the head and the tail of what a histogram holds, in whole bins: the head rounded down and the tail up.
func ends(h *histogram.Sliding, head, tail float64) (from, to time.Duration) {
	return time.Duration(h.Quantile(head)) * binWidth, time.Duration(h.Quantile(tail)+1) * binWidth
}

// says tells whether a histogram holds enough, and is crowded enough, to be relied on.
func says(h *histogram.Sliding) bool {
	return h.Inside() >= fewest && h.Spread() >= crowded
}
