package scale

import (
	"time"

	"github.com/sluice-serving/sluice/algo/histogram"
	"github.com/sluice-serving/sluice/serving"
)

// Of LSTH (INFless §3.5).
const (
	longTracked  = 24 * time.Hour
	shortTracked = time.Hour
	gamma        = 0.5
)

// LSTH is the long-short term histogram policy (INFless §3.5): heads and tails of the idle times of the last day and of
// the last hour, and of both the sums weighted with gamma and 1-gamma. It takes HHP's margins. What the paper leaves
// open: where the hour says nothing the day decides alone, and where neither says anything HHP's rules for that hold.
type LSTH struct {
	Gamma      float64 // weight of the long histogram in (0, 1); 0 means 0.5
	Head, Tail float64 // percentiles as shares; 0 means 0.05 and 0.99

	long  HybridHistogram
	short *histogram.Sliding
	spans [1]Span
}

// NewLSTH returns the policy.
func NewLSTH() *LSTH {
	return &LSTH{long: HybridHistogram{seen: newIdle(longTracked, 24)}, short: newIdle(shortTracked, 12)}
}

// Name implements Keeper.
func (*LSTH) Name() string { return "lsth" }

// Idled implements Keeper.
func (l *LSTH) Idled(now serving.Time, idle time.Duration) {
	l.long.Idled(now, idle)
	l.short.Add(int64(now), int64(idle))
}

// Warm implements Keeper.
func (l *LSTH) Warm(now serving.Time) []Span {
	l.long.Head, l.long.Tail = l.Head, l.Tail
	w := l.long.Warm(now)[0]
	l.short.Advance(int64(now))
	if says(l.long.seen) && says(l.short) {
		g := share(l.Gamma, gamma)
		from, to := ends(l.short, share(l.Head, headAt), share(l.Tail, tailAt))
		w.From = scaled(w.From, g) + scaled(from, (1-g)*(1-margin))
		w.To = scaled(w.To, g) + scaled(to, (1-g)*(1+margin))
	}
	l.spans[0] = w
	return l.spans[:]
}
