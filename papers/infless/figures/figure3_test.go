package infless

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// at is a source of queries at the given times.
type at []time.Duration

func (a *at) Next() (q workload.Arrival, more bool) {
	if len(*a) == 0 {
		return q, false
	}
	q.At = serving.Time((*a)[0])
	*a = (*a)[1:]
	return q, true
}

// A start takes 1 s, a call of n queries 100n ms. Alone, the queries at 0 and 50 ms launch an instance each, which are
// free at 1.1 and 1.15 s; that at 1.12 s takes the first and that at 1.13 s launches a third, free at 2.23 s. They stay
// for 300 s after they became free: 301.22 + 301.10 + 301.10 s.
func TestOneToOne(t *testing.T) {
	queries := at{0, 50 * ms, 1120 * ms, 1130 * ms}
	takes := func(n int) time.Duration { return time.Duration(n) * 100 * ms }
	alone := queries
	got := oneToOne(&alone, 1, 0, time.Second, takes)
	want := mapped{queries: 4, calls: 4, launched: 3, held: 301220*ms + 301100*ms + 301100*ms}
	if got != want {
		t.Errorf("alone: %+v, want %+v", got, want)
	}
	// In twos, which wait for 60 ms at most: calls at 50 ms, for an instance that is free at 1.25 s, and at 1.13 s.
	pairs := queries
	got = oneToOne(&pairs, 2, 60*ms, time.Second, takes)
	want = mapped{queries: 4, calls: 2, launched: 2, held: 2 * 301200 * ms}
	if got != want {
		t.Errorf("in twos: %+v, want %+v", got, want)
	}
	// In threes the first two go after 60 ms, and so do the others.
	threes := queries
	if got = oneToOne(&threes, 3, 60*ms, time.Second, takes); got.calls != 2 || got.launched != 2 {
		t.Errorf("in threes: %+v, want two calls on two instances", got)
	}
}
