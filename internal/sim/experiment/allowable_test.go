package experiment

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// bursts returns a probe whose violations come in groups of together. Their share grows with the rate and is limit at
// knee.
func bursts(knee, steep, limit float64, together, queries int) Probe {
	return func(_ context.Context, rate float64, seed uint64) (int, int, error) {
		share := min(limit*math.Pow(rate/knee, steep), 1)
		r := rand.New(rand.NewPCG(seed, math.Float64bits(rate)))
		violations := 0
		for range queries / together {
			if r.Float64() < share {
				violations += together
			}
		}
		return violations, queries, nil
	}
}

// With violations in bursts, the bounds of the search hold in nearly every search, and the estimate is near the truth.
func TestAllowableOfNoisyCurve(t *testing.T) {
	const searches = 300
	for _, c := range []struct {
		name     string
		steep    float64
		together int
		off      float64 // relative error of the estimate that is allowed on average
	}{{"steep", 60, 5, 0.01}, {"gentle", 8, 1, 0.03}, {"in large bursts", 30, 20, 0.02}} {
		outside, off, runs := 0, 0.0, 0
		for n := range searches {
			knee := math.Exp(4 * rand.New(rand.NewPCG(uint64(n), 1)).Float64())
			got, err := FindThroughput(t.Context(), bursts(knee, c.steep, 0.01, c.together, 5000), ThroughputSearch{
				Limit: 0.01, Start: 10, Resolution: 0.01, Seed: uint64(100 * n),
			})
			if err != nil {
				t.Fatal(err)
			}
			if !(got.Low > 0 && got.Low <= got.Rate && got.Rate <= got.High) {
				t.Fatalf("%s, search %d: %+v is out of order", c.name, n, got)
			}
			if knee < got.Low || knee > got.High {
				outside++
			}
			off += math.Abs(got.Rate/knee-1) / searches
			runs += got.Runs
		}
		t.Logf("%s: outside the bounds %d of %d, off by %.2f %%, %.1f runs", c.name, outside, searches, 100*off,
			float64(runs)/searches)
		// A search tests several rates several times, each with an error probability of 2.5 %.
		if outside > searches/8 {
			t.Errorf("%s: %d of %d lay outside the bounds", c.name, outside, searches)
		}
		if off > c.off {
			t.Errorf("%s: off by %.2f %% on average, want at most %.2f %%", c.name, 100*off, 100*c.off)
		}
	}
}

// Without noise the estimate is as exact as the resolution, wherever the search begins.
func TestAllowableOfSharpCurve(t *testing.T) {
	sharp := func(_ context.Context, rate float64, _ uint64) (int, int, error) {
		if rate > 47 {
			return 4000, 5000, nil
		}
		return 0, 5000, nil
	}
	for _, start := range []float64{0.5, 40, 46.999, 47.001, 60, 20_000} {
		got, err := FindThroughput(t.Context(), sharp, ThroughputSearch{Limit: 0.01, Start: start, Resolution: 0.001})
		if err != nil || got.Low > 47 || got.High < 47 || got.High-got.Low > 0.001*got.High || got.Rate < got.Low ||
			got.Rate > got.High {
			t.Errorf("from %v: %+v, %v", start, got, err)
		}
		if start == 46.999 && got.Runs > 12 {
			t.Errorf("from nearby it took %d runs", got.Runs)
		}
	}
	got, err := FindThroughput(t.Context(), sharp, ThroughputSearch{Limit: 0.01, Start: 90, MinRate: 50})
	if err != nil || got.Rate != 0 || got.Low != 0 || got.High != 50 {
		t.Errorf("nothing is carried at 50/s: %+v, %v", got, err)
	}
}

func TestAllowableRefuses(t *testing.T) {
	never := func(context.Context, float64, uint64) (int, int, error) { return 0, 10_000, nil }
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		p Probe
		o ThroughputSearch
	}{
		"no limit": {never, ThroughputSearch{Start: 1}}, "no start": {never, ThroughputSearch{Limit: 0.1}},
		"carries all": {never, ThroughputSearch{Limit: 0.1, Start: 1}},
		"broken": {func(context.Context, float64, uint64) (int, int, error) {
			return 0, 0, broken
		}, ThroughputSearch{Limit: 0.1, Start: 1}},
		"no query": {func(context.Context, float64, uint64) (int, int, error) {
			return 0, 0, nil
		}, ThroughputSearch{Limit: 0.1, Start: 1}},
		"chance": {never, ThroughputSearch{Limit: 0.1, Start: 1, ErrorProbability: 0.7}},
	} {
		if got, err := FindThroughput(t.Context(), c.p, c.o); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// queue is one server with exponential service of mean 1 ms behind one queue, with the given objective.
func queue(t *testing.T, slo time.Duration) *Environment {
	t.Helper()
	c := simtest.Uniform(1, 0, time.Millisecond, time.Hour, 1)
	c.Spec.Apps[0].SLO.Latency, c.Spec.Apps[0].Late = slo, serving.ServeLate
	return &Environment{
		Spec: c.Spec, Beliefs: c.Profile, Apps: []report.AppInfo{{Name: "app", SLO: c.Spec.Apps[0].SLO}},
		Truth: func(r *rand.Rand) (truth.Model, error) {
			return truth.NewTable(c.Spec, c.Measurements, truth.Exponential, r)
		},
	}
}

// In M/M/1 the time in the system is exponential with mean 1/(mu - lambda). So 1 % exceed T at lambda = mu - ln(100)/T.
// The simulated engine must carry that rate.
func TestAllowableOfOneServer(t *testing.T) {
	fcfs, err := systems.Get("fcfs")
	if err != nil {
		t.Fatal(err)
	}
	for _, slo := range []time.Duration{7 * time.Millisecond, 15 * time.Millisecond} {
		env := queue(t, slo)
		initial := simtest.Uniform(1, 0, time.Millisecond, time.Hour, 1).Plan
		at := func(rate *workload.Rate) *Case {
			return &Case{Env: env, System: fcfs, Initial: initial, Source: func(seed uint64) workload.Source {
				return &workload.App{
					Times:    workload.NewProcess(rate, workload.Poisson{}, workload.Rand(seed, "arrivals")),
					Template: workload.Arrival{Variant: serving.None},
				}
			}}
		}
		const queries = 20_000
		want := 1000 - math.Log(100)/slo.Seconds()
		got, err := FindThroughput(t.Context(), ViolationProbe(at, queries, 0.1), ThroughputSearch{
			Limit: 0.01, Start: 500, Resolution: 0.01, Runs: 16,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("SLO %v: %+v, theory %.1f", slo, got, want)
		if math.Abs(got.Rate/want-1) > 0.02 || want < got.Low*0.99 || want > got.High*1.01 {
			t.Errorf("SLO %v: %+v, theory says %.1f queries/s", slo, got, want)
		}
		// A rate that is far too high is recognised before the run ends.
		far := ViolationProbe(at, queries, 0.1)
		violations, n, err := far(t.Context(), 3000, 1)
		if err != nil || n != queries || violations < queries/10 || violations > queries/2 {
			t.Errorf("at three times what is carried: %d violations of %d, %v", violations, n, err)
		}
	}
}
