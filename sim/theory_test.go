package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
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

// mmcQuantile is the wait in M/M/c that a share q of the arrivals does not exceed, in mean service times: who waits,
// waits exponentially.
func mmcQuantile(c int, rho, q float64) float64 {
	return max(0, math.Log(erlangC(c, rho*float64(c))/(1-q))/(float64(c)*(1-rho)))
}

// mdcQuantile is the same of M/D/c, in service times.
func mdcQuantile(c int, rho, q float64) float64 {
	within := mdcWithin(c, rho)
	low, high := 0.0, 1.0
	for within(high) < q {
		high *= 2
	}
	for range 60 {
		if x := (low + high) / 2; within(x) < q {
			low = x
		} else {
			high = x
		}
	}
	return high
}

// mdcWithin returns the share of the arrivals in M/D/c that wait at most x service times, by G. J. Franx ("A simple
// solution for the M/D/c waiting time distribution", Operations Research Letters 29, 2001): with Q[n] the probability
// that at most n wait, P(W <= x) = sum over j < kc of Q[kc-1-j] e^-y y^j/j!, where k-1 <= x < k and y = c rho (k-x).
func mdcWithin(c int, rho float64) func(x float64) float64 {
	atMost := mdcQueue(c, rho)
	return func(x float64) float64 {
		k := int(x) + 1
		y := float64(c) * rho * (float64(k) - x)
		sum, term := 0.0, math.Exp(-y)
		for j := range k * c {
			sum += term * atMost[min(k*c-1-j, len(atMost)-1)]
			term *= y / float64(j+1)
		}
		return sum
	}
}

// mdcQueue returns the probabilities that at most 0, 1, ... queries wait in M/D/c: of those in the system, all that run
// have gone a service time later, and a Poisson number has come.
func mdcQueue(c int, rho float64) []float64 {
	const states = 400
	come := make([]float64, states)
	come[0] = math.Exp(-float64(c) * rho)
	for j := 1; j < states; j++ {
		come[j] = come[j-1] * float64(c) * rho / float64(j)
	}
	in := make([]float64, states)
	in[0] = 1
	for change := 1.0; change > 1e-13; {
		next := make([]float64, states)
		for i, p := range in {
			left := max(0, i-c)
			for j := left; j < states && come[j-left] > 1e-16; j++ {
				next[j] += p * come[j-left]
			}
		}
		change = 0
		for i := range in {
			change += math.Abs(next[i] - in[i])
		}
		in = next
	}
	var queue []float64
	sum := 0.0
	for i, p := range in {
		if sum += p; i >= c {
			queue = append(queue, sum)
		}
	}
	return queue
}

// queue is machines under fcfs and single. Each runs so many batches at once.
type queue struct {
	machines, slots int
	service         time.Duration
	noise           truth.Noise
	seed            uint64
}

// run sends n queries at a part of what the machines carry, Poisson, and calls end as each ends.
func (x queue) run(t *testing.T, rho float64, n int, end func(*report.Outcome)) {
	t.Helper()
	cl := simtest.Uniform(x.machines, 0, x.service, time.Hour, 1)
	cl.Spec.Apps[0].Late = serving.ServeLate
	for k := range cl.Plan.Instances {
		cl.Plan.Instances[k].Slots = x.slots
	}
	e, err := engine.New(engine.Config{
		Spec: cl.Spec, Profile: cl.Profile, Router: route.NewFCFS(), Batcher: batch.Single{},
		Provides: cl.Planner.Provides(),
	})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := truth.NewTable(cl.Spec, cl.Measurements, x.noise, workload.Rand(x.seed, "service"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Run(Config{
		Spec: cl.Spec, Engine: e, Truth: tr, Initial: cl.Plan, Warm: true,
		Source: &poisson{
			rng: workload.Rand(x.seed, "arrivals"), gap: float64(x.service) / (rho * float64(x.machines)), left: n,
		},
		Observe: func(now serving.Time, _ []engine.Input, out []engine.Decision) {
			for i := range out {
				if out[i].Kind == engine.EndQuery {
					o := out[i].Ended(now)
					end(&o)
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Under fcfs and single the engine's queue is M/M/c or M/D/c: its waits must have the textbook's mean and percentiles.
func TestWaitingTimesAgreeWithTheory(t *testing.T) {
	const service, seed = time.Millisecond, 1
	for _, c := range []int{1, 4} {
		for _, rho := range []float64{0.3, 0.5, 0.7, 0.9} {
			for _, noise := range []truth.Noise{truth.Exponential, truth.Exact} {
				name, want, quantile := "M/M", mmcWait(c, rho), mmcQuantile
				if noise == truth.Exact {
					name, want, quantile = "M/D", mdcWait(c, rho), mdcQuantile
				}
				t.Run(fmt.Sprintf("%s/%d at %.0f%%", name, c, 100*rho), func(t *testing.T) {
					t.Parallel()
					n := queriesFor(want, rho)
					var wait float64
					waits := make([]float64, 0, n)
					queue{machines: c, slots: 1, service: service, noise: noise, seed: seed}.run(t, rho, n,
						func(o *report.Outcome) {
							wait += float64(o.Queue)
							waits = append(waits, float64(o.Queue)/float64(service))
						})
					got := wait / float64(len(waits)) / float64(service)
					if math.Abs(got-want) > 0.03*want {
						t.Errorf("seed %d: mean wait %.5f service times over %d queries, theory says %.5f (%+.2f %%)",
							seed, got, n, want, 100*(got-want)/want)
					}
					slices.Sort(waits)
					for _, q := range []float64{0.95, 0.99} {
						got, want := waits[int(q*float64(len(waits)))], quantile(c, rho, q)
						if math.Abs(got-want) > max(0.05*want, 0.001) {
							t.Errorf("seed %d: percentile %v of the wait is %.5f service times, theory says %.5f",
								seed, 100*q, got, want)
						}
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

// The textbook formulas themselves: M/M/1 and M/D/1 have closed forms, M/D/c tends to half of M/M/c near saturation,
// and the distribution of M/D/c has the mean that Crommelin's series gives.
func TestTheory(t *testing.T) {
	for _, rho := range []float64{0.3, 0.5, 0.9} {
		if got, want := mmcWait(1, rho), rho/(1-rho); math.Abs(got-want) > 1e-9 {
			t.Errorf("M/M/1 at %v: %v, want %v", rho, got, want)
		}
		if got, want := mdcWait(1, rho), rho/(1-rho)/2; math.Abs(got-want) > 1e-6 {
			t.Errorf("M/D/1 at %v: %v, want %v", rho, got, want)
		}
	}
	for _, c := range []int{1, 4} {
		const step = 0.001
		mean, within := 0.0, mdcWithin(c, 0.7)
		for x := step / 2; x < 30; x += step {
			mean += step * (1 - within(x))
		}
		if want := mdcWait(c, 0.7); math.Abs(mean-want) > 0.01*want {
			t.Errorf("M/D/%d at 70 %%: the distribution's mean is %v, the series' %v", c, mean, want)
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

// psResponse returns the share of the jobs in M/M/1 with processor sharing whose response takes more than x mean
// service times. With n others a job ends at rate 1/(n+1), one of the others at n/(n+1), and another comes at rate rho;
// it finds n others with probability (1 - rho) rho^n. The equations for the share that is left are solved step by step.
func psResponse(rho float64) func(x float64) float64 {
	const most, step = 200, 0.002
	left := make([]float64, most+1)
	for n := range left {
		left[n] = 1
	}
	var shares []float64 // by steps
	return func(x float64) float64 {
		for k := len(shares); float64(k)*step <= x; k++ {
			sum := 0.0
			for n := most - 1; n >= 0; n-- {
				sum = sum*rho + left[n]
			}
			shares = append(shares, (1-rho)*sum)
			next := make([]float64, most+1)
			for n := range most {
				others := 0.0
				if n > 0 {
					others = float64(n) / float64(n+1) * (left[n-1] - left[n])
				}
				next[n] = left[n] + step*(rho*(left[n+1]-left[n])+others-left[n]/float64(n+1))
			}
			next[most] = next[most-1]
			left = next
		}
		return shares[int(x/step)]
	}
}

// Where an instance runs many batches at once, each at its part of the speed, the engine's queue is M/G/1 with
// processor sharing: the mean response is 1/(1 - rho) service times whatever their distribution (Kleinrock, Queueing
// Systems II, 1976, 4.4), and of exponential ones the percentiles are known.
func TestSharedProcessorsAgreeWithTheory(t *testing.T) {
	const service, seed = time.Millisecond, 1
	for _, rho := range []float64{0.3, 0.5, 0.7} {
		for _, noise := range []truth.Noise{truth.Exponential, truth.Exact} {
			t.Run(fmt.Sprintf("noise %d at %.0f%%", noise, 100*rho), func(t *testing.T) {
				t.Parallel()
				n := longtest.Of(100_000, 1_000_000)
				took, sum := make([]float64, 0, n), 0.0
				queue{machines: 1, slots: 128, service: service, noise: noise, seed: seed}.run(t, rho, n,
					func(o *report.Outcome) {
						x := float64(o.Done-o.Arrived) / float64(service)
						took, sum = append(took, x), sum+x
					})
				if got, want := sum/float64(len(took)), 1/(1-rho); len(took) != n || math.Abs(got-want) > 0.05*want {
					t.Errorf("seed %d: %d of %d answered after %.4f service times, theory says %.4f", seed, len(took),
						n, got, want)
				}
				if noise == truth.Exact {
					return
				}
				slices.Sort(took)
				longer := psResponse(rho)
				for _, q := range []float64{0.95, 0.99} {
					x := took[int(q*float64(len(took)))]
					if got := longer(x); math.Abs(got-(1-q)) > 0.1*(1-q) {
						t.Errorf("seed %d: %.1f %% take more than %.3f service times, theory says %.3f %%", seed,
							100*(1-q), x, 100*got)
					}
				}
			})
		}
	}
}
