package monitor

import (
	"math/rand/v2"
	"testing"

	"github.com/sluice-serving/sluice/serving"
)

// The declared rate is the sum over the open streams of each app, to the last bit, whatever was opened and closed.
func TestDeclaredAgainstMaps(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		rng := rand.New(rand.NewPCG(seed, 2))
		r := NewRates(1)
		r.Grow([]serving.AppID{1})
		open := [2]map[uint64]float64{{}, {}}
		for step := range 300 {
			app, stream := rng.IntN(2), 1+rng.Uint64N(12)
			before := r.Declared(serving.AppID(app))
			var changed bool
			if rng.IntN(2) == 0 {
				rate := float64(rng.IntN(4)) / 10
				open[app][stream] = rate
				changed = r.Open(serving.AppID(app), stream, rate)
			} else {
				delete(open[app], stream)
				changed = r.Close(serving.AppID(app), stream)
			}
			for a := range open {
				want := 0.0
				for s := uint64(1); s <= 12; s++ {
					want += open[a][s]
				}
				if got := r.Declared(serving.AppID(a)); got != want || r.Streams(serving.AppID(a)) != len(open[a]) {
					t.Fatalf("seed %d, step %d, app %d: %d streams declare %v, want %d and %v", seed, step, a,
						r.Streams(serving.AppID(a)), got, len(open[a]), want)
				}
			}
			if changed != (r.Declared(serving.AppID(app)) != before) {
				t.Fatalf("seed %d, step %d: changed %v, from %v to %v", seed, step, changed, before,
					r.Declared(serving.AppID(app)))
			}
		}
	}
}
