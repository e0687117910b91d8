package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// erlangC is the probability that an arrival waits in M/M/c with offered load a = lambda/mu.
func erlangC(c int, a float64) float64 {
	sum, term := 0.0, 1.0
	for k := range c {
		sum += term
		term *= a / float64(k+1)
	}
	last := term * float64(c) / (float64(c) - a)
	return last / (sum + last)
}

// mmcWait is the mean wait in M/M/c in units of the mean service time.
func mmcWait(c int, rho float64) float64 {
	return erlangC(c, rho*float64(c)) / (float64(c) * (1 - rho))
}

// mdcWait is the mean wait in M/D/c in units of the service time, by Crommelin's exact series (C. D. Crommelin, "Delay
// probability formulae when the holding times are constant", P.O. Electrical Engineers Journal 25, 1932): W = sum over
// k >= 1 of exp(-k c rho) * [ sum over j > kc of (k c rho)^j / j! - 1/rho * the same from j > kc+... ]. In the form
// used here, with y = k c rho: W = sum_k e^-y * ( sum_{j>=kc} y^j/j! - (1/rho) * sum_{j>=kc+1} y^j/j! ).
func mdcWait(c int, rho float64) float64 {
	w := 0.0
	for k := 1; k < 4000; k++ {
		y := float64(k*c) * rho
		n := k * c
		lg, _ := math.Lgamma(float64(n) + 1)
		term := math.Exp(-y + float64(n)*math.Log(y) - lg)
		from, add := 0.0, 0.0
		for j := n; ; j++ {
			from += term
			if j > n {
				add += term
			}
			term *= y / float64(j+1)
			if term < 1e-18 {
				break
			}
		}
		d := from - add/rho
		w += d
		if d < 1e-12 {
			break
		}
	}
	return w
}

// Under fcfs and single the engine's queue is M/M/c or M/D/c; its mean wait must be the textbook's.
func TestWaitingTimesAgreeWithTheory(t *testing.T) {
	const service = time.Millisecond
	for _, c := range []int{1, 4} {
		for _, rho := range []float64{0.3, 0.5, 0.7, 0.9} {
			for _, noise := range []truth.Noise{truth.Exponential, truth.Exact} {
				name, want := "M/M", mmcWait(c, rho)
				if noise == truth.Exact {
					name, want = "M/D", mdcWait(c, rho)
				}
				t.Run(fmt.Sprintf("%s/%d at %.0f%%", name, c, 100*rho), func(t *testing.T) {
					t.Parallel()
					n := queriesFor(want, rho)
					const seed = 1
					cl := simtest.Uniform(c, 0, service, time.Hour, 1)
					cl.Spec.Apps[0].Late = serving.ServeLate
					e, err := engine.New(engine.Config{
						Spec: cl.Spec, Profile: cl.Profile, Router: route.NewFCFS(), Batcher: batch.Single{},
						Provides: cl.Planner.Provides(),
					})
					if err != nil {
						t.Fatal(err)
					}
					tr, err := truth.NewTable(cl.Spec, cl.Measurements, noise, workload.Rand(seed, "service"))
					if err != nil {
						t.Fatal(err)
					}
					var wait, count float64
					_, err = Run(Config{
						Spec: cl.Spec, Engine: e, Truth: tr, Initial: cl.Plan, Warm: true,
						Source: &poisson{
							rng: workload.Rand(seed, "arrivals"), gap: float64(service) / (rho * float64(c)), left: n,
						},
						Observe: func(_ serving.Time, _ []engine.Input, out []engine.Decision) {
							for i := range out {
								if out[i].Kind == engine.EndQuery {
									wait += float64(out[i].Queue)
									count++
								}
							}
						},
					})
					if err != nil {
						t.Fatal(err)
					}
					got := wait / count / float64(service)
					if math.Abs(got-want) > 0.03*want {
						t.Errorf("seed %d: mean wait %.5f service times over %d queries, theory says %.5f (%+.2f %%)",
							seed, got, n, want, 100*(got-want)/want)
					}
				})
			}
		}
	}
}

// queriesFor returns so many queries that the standard error of the mean wait is about half a per cent, in the short
// form 0.8 %: waits are correlated over about 1/(1-rho)^2 services, and at low load only some queries wait. The highest
// load gets fewer in the short form, and an error of 1.4 %.
func queriesFor(wait, rho float64) int {
	n := longtest.Of(30_000.0, 80_000) / (1 - rho) / (1 - rho)
	if wait < 0.1 {
		n = max(n, longtest.Of(15_000.0, 40_000)/wait)
	}
	return int(min(n, longtest.Of(1_500_000.0, 6_000_000)))
}

// The textbook formulas themselves: M/M/1 and M/D/1 have closed forms, and M/D/c tends to half of M/M/c near
// saturation.
func TestTheory(t *testing.T) {
	for _, rho := range []float64{0.3, 0.5, 0.9} {
		if got, want := mmcWait(1, rho), rho/(1-rho); math.Abs(got-want) > 1e-9 {
			t.Errorf("M/M/1 at %v: %v, want %v", rho, got, want)
		}
		if got, want := mdcWait(1, rho), rho/(1-rho)/2; math.Abs(got-want) > 1e-6 {
			t.Errorf("M/D/1 at %v: %v, want %v", rho, got, want)
		}
	}
	if r := mdcWait(4, 0.98) / mmcWait(4, 0.98); math.Abs(r-0.5) > 0.02 {
		t.Errorf("M/D/4 over M/M/4 near saturation: %v, want about one half", r)
	}
}

// poisson is a plain exponential-gap source, independent of package workload.
type poisson struct {
	rng  *rand.Rand
	gap  float64
	at   float64
	left int
}

func (p *poisson) Next() (workload.Arrival, bool) {
	if p.left == 0 {
		return workload.Arrival{}, false
	}
	p.left--
	p.at += p.gap * p.rng.ExpFloat64()
	return workload.Arrival{At: serving.Time(p.at), Items: 1, Variant: serving.None, Sample: -1}, true
}
