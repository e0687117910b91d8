package scrooge

import (
	"testing"
	"time"
)

// Items that come together wait for the batches of those before them. A machine that is sent a share of them is sent as
// much less at once.
func TestBursts(t *testing.T) {
	const took = 100 * time.Millisecond
	for _, c := range []struct {
		rate, items float64 // of the stage; at once, for a query
		want        time.Duration
	}{
		{20, 4, 0},              // as many as run at once
		{20, 5, took},           // one more
		{40, 9, 2 * took},       // all of them on the machine, which carries all of the rate
		{160, 9, 0},             // a fourth of the rate, and three of nine
		{80, 9, took},           // half of it, and five of nine
		{20, 0, 0},              // one by one
		{0.001, 100, 24 * took}, // hardly any rate
	} {
		s := &stage{rate: c.rate, modes: []Mode{{Batch: 2, Slots: 2, Latency: took}}}
		(&request{}).addBursts(s, c.items)
		if got := s.modes[0].Burst; got != c.want {
			t.Errorf("%v items at once of %v a second: %v, want %v", c.items, c.rate, got, c.want)
		}
		m := s.modes[0]
		m.Burst = 0
		if s.modes[0].WorstLatency(10)-m.WorstLatency(10) != c.want {
			t.Errorf("%v items at once: not in the worst latency", c.items)
		}
	}
}
