package profiler

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-serving/sluice/internal/runtime/fake"
	"github.com/sluice-serving/sluice/serving"
)

// serviceRuns counts runs, those that came after a pause, and those that came after one of the same variant.
type serviceRuns struct {
	all, paused, again int
	pauses             time.Duration
}

// runsOf measures four variants, of which the first ones scatter and so are never exact enough.
func runsOf(t *testing.T, scattering int) (out serviceRuns) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var ended time.Time
		last := serving.VariantID(serving.None)
		b := backend(t, fake.Config{Latency: func(v serving.VariantID, _ int) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			now := time.Now()
			out.all++
			if v == last {
				out.again++
			}
			if gap := now.Sub(ended); gap > 0 && out.all > 1 {
				out.paused++
				out.pauses += gap
			}
			took := 2 * ms
			if int(v) < scattering && out.all%2 == 0 {
				took += ms / 100
			}
			ended, last = now.Add(took), v
			return took
		}})
		if _, err := Run(t.Context(), Config{
			Spec: world(4, 1, time.Second), Backend: b, Input: rows, MeanWidth: 1e-9, P95Width: 1e-9,
			MaxSamples: 4000, MaxTime: time.Hour, Seed: 3,
		}, nil); err != nil {
			t.Fatal(err)
		}
	})
	return out
}

// Every other run comes right after the one before, the others after a pause of twice a run on average.
func TestEveryOtherRunComesAfterAPause(t *testing.T) {
	r := runsOf(t, 4)
	share, mean := float64(r.paused)/float64(r.all), r.pauses/time.Duration(r.paused)
	if share < 0.47 || share > 0.53 || mean < 38*ms/10 || mean > 42*ms/10 {
		t.Errorf("%.3f of %d runs came after a pause, of %v on average", share, r.all, mean)
	}
}

// One run of four comes after one of the same variant of four, also when only one of them is not finished.
func TestRunsComeAfterThoseOfOtherVariants(t *testing.T) {
	for _, scattering := range []int{4, 1} {
		r := runsOf(t, scattering)
		if share := float64(r.again) / float64(r.all); share > 0.3 {
			t.Errorf("%d of 4 variants are finished: %.3f of %d runs came after one of the same variant", 4-scattering,
				share, r.all)
		}
	}
}
