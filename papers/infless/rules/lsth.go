package rules

import (
	"cmp"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/histogram"
	"github.com/sluice-serving/sluice/serving"
)

// Constants of LSTH (INFless §3.5).
const (
	longTracked  = 24 * time.Hour
	shortTracked = time.Hour
	gamma        = 0.5
)

// LSTH is the long-short term histogram policy (INFless §3.5). It takes heads and tails from a histogram of the last
// day and one of the last hour, and weighs them with gamma and 1-gamma. Margins are HHP's. The paper leaves open what
// unrepresentative histograms do: without the hour's, the day's decides alone; without either, HHP's rules hold.
type LSTH struct {
	Gamma      float64 // weight of the long histogram in (0, 1); 0 means 0.5
	Head, Tail float64 // quantiles in [0, 1]; 0 means 0.05 and 0.99

	long  HybridHistogram
	short *histogram.Sliding
	spans [1]Span
}

// NewLSTH returns the policy.
func NewLSTH() *LSTH {
	return &LSTH{long: HybridHistogram{seen: newIdle(longTracked, 24)}, short: newIdle(shortTracked, 12)}
}

// Name implements KeepAlive.
func (*LSTH) Name() string { return "lsth" }

// Idled implements KeepAlive.
func (l *LSTH) Idled(now serving.Time, idle time.Duration) {
	l.long.Idled(now, idle)
	l.short.Add(int64(now), int64(idle))
}

// Warm implements KeepAlive.
func (l *LSTH) Warm(now serving.Time) []Span {
	l.long.Head, l.long.Tail = l.Head, l.Tail
	w := l.long.Warm(now)[0]
	l.short.Advance(int64(now))
	if representative(l.long.seen) && representative(l.short) {
		g := cmp.Or(l.Gamma, gamma)
		from, to := headAndTail(l.short, cmp.Or(l.Head, headQuantile), cmp.Or(l.Tail, tailQuantile))
		w.From = scaled(w.From, g) + scaled(from, (1-g)*(1-margin))
		w.To = scaled(w.To, g) + scaled(to, (1-g)*(1+margin))
	}
	l.spans[0] = w
	return l.spans[:]
}
