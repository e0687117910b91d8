package rules

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/monitor"
)

// A plan is asked for when arrivals have another pattern than its policies expect, once that can be told.
func TestUncoveredWatchesThePattern(t *testing.T) {
	spec := &serving.Spec{Apps: make([]serving.App, 1), Stages: make([]serving.Stage, 1)}
	// In clumps of so many at every tenth of a second that is drawn by chance; 0 for even arrivals.
	for _, c := range []struct {
		clump    int
		expected float64 // by the policies in force
		after    time.Duration
		want     bool
	}{
		{clump: 8, expected: 0, after: 20 * time.Second, want: false}, // they follow no pattern
		{clump: 8, expected: 1, after: 20 * time.Second, want: true},
		{clump: 8, expected: 1, after: 9 * time.Second, want: false}, // too early
		{clump: 8, expected: 8, after: 20 * time.Second, want: false},
		{clump: 0, expected: 1, after: 20 * time.Second, want: true},
		{clump: 0, expected: 1. / 64, after: 20 * time.Second, want: false},
	} {
		seen := monitor.NewRates(1)
		rnd := uint32(1)
		for at := time.Duration(0); at < c.after; at += 100 * time.Millisecond {
			n := 8
			if c.clump > 0 { // two clumps to a tenth of a second, by a binomial draw
				n = 0
				for range 16 {
					rnd = rnd*1664525 + 1013904223
					if rnd>>29 == 0 {
						n += c.clump
					}
				}
			}
			for range n {
				seen.Add(serving.Time(at), 0)
			}
		}
		now := serving.Time(c.after)
		v := &scale.View{
			Now: now, Spec: spec, Monitor: &seen.View,
			Plan: &plan.Plan{Policies: []plan.Policies{{
				ByRate: []plan.Policy{{Rate: 1e6}}, Dispersion: c.expected,
			}}},
		}
		if got, _ := (Uncovered{}).Decide(v); got != c.want {
			t.Errorf("clumps of %d, dispersion %v seen and %v expected, after %v: asks is %v", c.clump,
				seen.Dispersion(now, 0), c.expected, c.after, got)
		}
		v.Requested = true
		if got, _ := (Uncovered{}).Decide(v); got {
			t.Error("asks while a plan is under way")
		}
	}
}
