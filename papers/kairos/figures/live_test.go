package kairos

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// A probe on the data plane sees the same violations as one in the simulator: below the throughput of a pool, at it,
// and far above it, where it gives up. Time is fake, so that only the order differs in which machines draw.
func TestLiveProbe(t *testing.T) {
	run := newRunner(reproduce.Request{})
	s, err := run.deployment(paperSetup("rm2"))
	if err != nil {
		t.Fatal(err)
	}
	tr, g := trial{setup: paperSetup("rm2"), system: kairosRule, arrivals: wholeMillis, pool: pool{2, 0, 9, 0}},
		precision{queries: 4000}
	live, err := s.liveProbe(tr, g, giveUpShare)
	if err != nil {
		t.Fatal(err)
	}
	simulated, err := s.probe(tr, g, giveUpShare)
	if err != nil {
		t.Fatal(err)
	}
	for _, rate := range []float64{90, 105, 115, 500} {
		want, _, err := simulated(t.Context(), rate, 1)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			got, n, err := live(t.Context(), rate, 1)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("at %v/s %d of %d violate live, %d simulated", rate, got, n, want)
			if off := max(got-want, want-got); n != g.queries || off > 1+want/20 {
				t.Errorf("at %v/s %d of %d violate live and %d simulated", rate, got, n, want)
			}
		})
	}
}

// The whole figure runs on fake time. The search on the data plane takes the same pool as the simulated one, and pools
// carry the same.
func TestFigure11Live(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, err := study.Run(t.Context(),
			newRunner(reproduce.Request{Figures: []string{"11L"}, Seeds: 1, Parallel: 1}))
		if err != nil {
			t.Fatal(err)
		}
		of := make(map[string]map[string]float64) // by quantity, unit and pool, then by system
		for _, r := range o.Rows {
			key, system := r.Quantity+r.Unit+r.Setting["pool"], r.System
			if what, where, split := strings.Cut(r.Quantity, ", "); split {
				key, system = what+r.Unit+r.Setting["pool"], where
			}
			if of[key] == nil {
				of[key] = make(map[string]float64)
			}
			of[key][system] = r.Measured
		}
		compared := 0
		for key, by := range of {
			var first float64
			for _, v := range by {
				first = v
			}
			for system, v := range by {
				if len(by) > 1 {
					compared++
				}
				if math.Abs(v-first) > 0.02*first {
					t.Errorf("%s is %v for %s, and %v", key, v, system, by)
				}
			}
		}
		if compared < 2*(len(machineTypes)+3+liveAtOnce) {
			t.Errorf("%d numbers were compared: %v", compared, of)
		}
	})
}
