package ramsis

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/sim/truth"
)

var seeds = flag.Int("seeds", 0, "runs of each case of the tests that the documents name, 5 there; "+
	"0 runs a case of each, once")

// perWorker is the rate that one worker carries in time with the fastest image model within 150 ms, in queries/s.
const perWorker = 3812.0 / 60

// noise has batches scatter: log-normal, with the profiled 95th percentile and a standard deviation that is no more
// than a part of that percentile.
type noise struct {
	deviation time.Duration
	part      time.Duration // 6 for a sixth
}

// apply replaces the world's truth, and its beliefs by a statistic of it.
func (n noise) apply(t *testing.T, j *job, at setup, belief profile.Statistic) {
	t.Helper()
	all, m, err := newSpec(at)
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Latency {
		p := &m.Latency[i]
		p.StdDev = min(n.deviation, p.P95/n.part)
		p.Mean, p.P99 = lognormal(p.P95, p.StdDev)
	}
	if j.Env.Beliefs, err = profile.NewTable(all, m, belief); err != nil {
		t.Fatal(err)
	}
	j.Env.Truth = func(r *rand.Rand) (truth.Model, error) { return truth.NewTable(all, m, truth.Lognormal, r) }
}

// lognormal returns the mean and the 99th percentile of the distribution with a 95th percentile and a deviation.
func lognormal(p95, deviation time.Duration) (mean, p99 time.Duration) {
	quantile := func(mean, z float64) float64 {
		s2 := math.Log1p(math.Pow(float64(deviation)/mean, 2))
		return math.Exp(math.Log(mean) - s2/2 + z*math.Sqrt(s2))
	}
	low, high := float64(p95)/10, float64(p95)
	for range 60 {
		if mid := (low + high) / 2; quantile(mid, 1.6448536) > float64(p95) {
			high = mid
		} else {
			low = mid
		}
	}
	return time.Duration(low), time.Duration(quantile(low, 2.3263479))
}

// average runs a job and returns accuracy and violations in per cent, means over seeds from 1 on.
func average(t *testing.T, j *job, seeds int) (accuracy, late float64) {
	t.Helper()
	for seed := range uint64(seeds) {
		r, err := j.simulate(t.Context(), seed+1)
		if err != nil {
			t.Fatal(err)
		}
		accuracy, late = accuracy+r.accuracy/float64(seeds), late+r.violations/float64(seeds)
	}
	return accuracy, late
}

// With few workers tidal's forecast is too good, since its position says too little, but it stays above ramsis whose
// policies are made for the very load.
func TestFewWorkers(t *testing.T) {
	counts, parts, runs := []int{4, 6, 10}, []float64{0.6, 0.7, 0.85}, *seeds
	if runs == 0 {
		counts, parts, runs = []int{6}, []float64{0.7}, 1
	}
	for _, n := range counts {
		for _, part := range parts {
			at := a4Setup
			at.workers = n
			on := testLoad(t, part*perWorker*float64(n))
			theirs, theirLate := average(t, testJob(t, at, "ramsis", on), runs)
			ours, late := average(t, testJob(t, at, "tidal", on), runs)
			t.Logf("%d workers at %.0f %%, %.0f queries/s: ramsis %.2f %%, %.2f %% late; tidal %.2f %%, %.2f %% late",
				n, 100*part, on.known, theirs, theirLate, ours, late)
			if ours < theirs || late > 2 {
				t.Errorf("%d workers at %v of what they carry: tidal %.2f %% and %.2f %% late, ramsis %.2f %%", n,
					part, ours, late, theirs)
			}
		}
	}
}

// When batches scatter tidal uses slack to the end and pays for it; slack of 15 ms, or believing the 99th percentile,
// mends that while the deviation is below the slack.
func TestNoise(t *testing.T) {
	variations := []struct {
		name, system string
		slack        time.Duration
		belief       profile.Statistic
		mended       bool
	}{
		{"ramsis", "ramsis", 0, profile.P95, false},
		{"ramsis, slack 15 ms", "ramsis", 15 * ms, profile.P95, true},
		{"tidal", "tidal", 0, profile.P95, false},
		{"tidal, slack 15 ms", "tidal", 15 * ms, profile.P95, true},
		{"tidal, believing the 99th percentile", "tidal", 0, profile.P99, true},
	}
	type point struct {
		workers int
		rate    float64
		noise   noise
	}
	points, runs := []point{{60, 2400, noise{10 * ms, 6}}}, *seeds
	if runs == 0 {
		runs = 1
	} else {
		points = nil
		for _, rate := range []float64{800, 1600, 2400, 2800, 3200, 3600} {
			points = append(points, point{60, rate, noise{10 * ms, 6}})
		}
		for _, deviation := range []time.Duration{5, 10, 15, 20} {
			points = append(points, point{60, 2400, noise{deviation * ms, 2}})
		}
		points = append(points, point{10, 0.6 * perWorker * 10, noise{10 * ms, 6}})
	}
	for _, x := range points {
		for _, v := range variations {
			at := a4Setup
			at.workers = x.workers
			j := testJob(t, at, v.system, testLoad(t, x.rate))
			x.noise.apply(t, j, at, v.belief)
			j.Env.Spec.Apps[0].Slack = v.slack
			accuracy, late := average(t, j, runs)
			t.Logf("%d workers, %.0f queries/s, deviation %v or a %dth, %s: %.2f %%, %.2f %% late", x.workers, x.rate,
				x.noise.deviation, x.noise.part, v.name, accuracy, late)
			if v.mended && x.noise.deviation <= 10*ms && late > 0.3 {
				t.Errorf("%d workers, %v queries/s, %s: %.2f %% late", x.workers, x.rate, v.name, late)
			}
		}
	}
}

// An estimate of the load over the last half second costs tidal little below the limit.
func TestLoadEstimated(t *testing.T) {
	rates, runs := []float64{400, 800, 1200, 1600, 2000, 2400, 2800, 3200, 3600}, *seeds
	if runs == 0 {
		rates, runs = []float64{2400}, 1
	}
	for _, rate := range rates {
		known := testLoad(t, rate)
		guessed := *known
		guessed.known = 0
		best, none := average(t, testJob(t, a4Setup, "tidal", known), runs)
		seen, late := average(t, testJob(t, a4Setup, "tidal", &guessed), runs)
		t.Logf("%v queries/s: load known %.2f %%, %.4f %% late; estimated %.2f %%, %.4f %% late", rate, best, none,
			seen, late)
		if rate < 3000 && (seen < best-0.2 || late > 0) {
			t.Errorf("%v queries/s: %.2f %% and %.2f %% late, with the load known %.2f %%", rate, seen, late, best)
		}
	}
}
