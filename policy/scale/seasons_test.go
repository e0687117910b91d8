package scale

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/monitor"
)

// foreseen shows the rule's forecasts to look, every tenth of a second: without seasons, and by them. clump is how many
// queries arrive together.
func foreseen(span time.Duration, seed uint64, clump int, rate func(s float64) float64,
	look func(s, without, by float64)) {
	rng := rand.New(rand.NewPCG(seed, 1))
	m := monitor.NewRates(1)
	v := &View{
		Spec:    &serving.Spec{Apps: []serving.App{{SLO: serving.SLO{Latency: time.Second}}}},
		Monitor: &m.View, Waiting: []int{0},
	}
	x := &Anticipate{}
	arrival := serving.Time(0)
	for now := serving.Time(0); now < serving.Time(span); now = now.Add(Poll) {
		for ; arrival < now; arrival = arrival.Add(time.Duration(rng.ExpFloat64() /
			max(rate(arrival.Seconds()), 0.01) * float64(clump) * 1e9)) {
			for range clump {
				m.Add(arrival, 0)
			}
		}
		v.Now = now
		x.look(v)
		look(now.Seconds(), forecast(v, 0), x.seasonal[0].ahead(now, lead))
	}
}

// A demand of ten seconds in every minute is foreseen from the third minute on, before it comes; the rule without
// seasons sees it when it is there. After it has stayed away it is foreseen no more.
func TestMinutesAreForeseen(t *testing.T) {
	before, without, quiet := math.Inf(1), 0.0, 0.0
	foreseen(8*time.Minute, 1, 1, func(s float64) float64 {
		if at := math.Mod(s, 60); at >= 40 && at < 50 && s < 300 {
			return 200
		}
		return 20
	}, func(s, rate, by float64) {
		at := math.Mod(s, 60)
		switch {
		case s > 180 && s < 300 && at > 38.2 && at < 39.8:
			before, without = min(before, by), max(without, rate)
		case s > 440:
			quiet = max(quiet, by)
		case s > 180 && s < 300 && at > 5 && at < 35 && by > 60:
			t.Errorf("at %.1f s %.0f/s are foreseen where 20/s come", s, by)
		}
	})
	if before < 120 || without > 40 || quiet > 40 {
		t.Errorf("just before 200/s at least %.0f/s are foreseen, without seasons %.0f/s; two minutes after the last "+
			"time %.0f/s", before, without, quiet)
	}
}

// A demand that doubles from hour to hour is foreseen to do so.
func TestSeasonsFollowGrowth(t *testing.T) {
	at, n := 0.0, 0.0
	foreseen(4*time.Hour, 2, 1, func(s float64) float64 {
		return (1 + math.Floor(s/3600)/2) * 4 * (1.2 + math.Sin(2*math.Pi*s/3600))
	}, func(s, _, by float64) {
		if hour := math.Mod(s, 3600); s > 3.15*3600 && hour > 820 && hour < 980 { // the highest
			at, n = at+by, n+1
		}
	})
	if want := 2.5 * 4 * 2.2; math.Abs(at/n-want) > 0.25*want {
		t.Errorf("%.1f/s are foreseen, %.1f/s come", at/n, want)
	}
}

// Where there is no season the forecasts are those without: of even and clumped arrivals, steps at any time, drifts and
// single bursts, whatever the rate.
func TestNoSeasonChangesNothing(t *testing.T) {
	raised, all, worst := 0.0, 0.0, 0.0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 2))
		mean := math.Exp(6 * rng.Float64()) // 1 to 400/s
		clump := 1 + rng.IntN(8)*int(seed%2)
		level, next := 1.0, 0.0
		foreseen(12*time.Minute, seed, clump, func(s float64) float64 {
			if seed%4 >= 2 && s > next {
				level, next = 0.2+2*rng.Float64(), s+60*rng.ExpFloat64()
			}
			return mean * level
		}, func(s, without, by float64) {
			all++
			if by > 1.02*without+0.2 {
				raised++
				worst = max(worst, by/max(without, 0.1))
			}
		})
	}
	t.Logf("raised in %.3f %% of the looks, at most %.1f times", 100*raised/all, worst)
	if raised/all > 0.01 {
		t.Errorf("forecasts without seasons are raised in %.2f %% of all looks", 100*raised/all)
	}
}
