package sim

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/sim/truth"
)

// network is an app whose stages are queues of their own: each has servers on workers of its own and one variant, whose
// batch takes a time whatever its size.
type network struct {
	spec         *serving.Spec
	place        []static.Instance
	measurements serving.Measurements
}

// newNetwork is an app without stages that serves every query, however late.
func newNetwork() *network {
	return &network{spec: &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "cpu", Cores: 1}},
		Apps: []serving.App{{
			Name: "app", SLO: serving.SLO{Latency: 10 * time.Hour, Percentile: 99}, Late: serving.ServeLate, Weight: 1,
			QueueLimit: 1 << 20,
		}},
	}}
}

// station adds a stage. Its service times have a mean and a deviation, where noise is log-normal. from are the stages
// that feed it.
func (n *network) station(servers, largest int, mean, deviation time.Duration,
	from ...serving.StageID) serving.StageID {
	id := serving.StageID(len(n.spec.Stages))
	n.spec.Stages = append(n.spec.Stages, serving.Stage{
		Name: fmt.Sprintf("s%d", id), Variants: []serving.VariantID{serving.VariantID(id)}, Joins: len(from),
	})
	for _, f := range from {
		n.spec.Stages[f].Next = append(n.spec.Stages[f].Next, serving.Edge{To: id, FanOut: 1})
	}
	n.spec.Apps[0].Stages = append(n.spec.Apps[0].Stages, id)
	v := serving.VariantID(id)
	n.spec.Variants = append(n.spec.Variants, serving.Variant{
		Name: fmt.Sprintf("v%d", id), Stage: id, Accuracy: 1, MaxBatch: largest,
	})
	n.measurements.Latency = append(n.measurements.Latency, simtest.Point(v, 0, 1, 1, mean, deviation))
	if largest > 1 {
		n.measurements.Latency = append(n.measurements.Latency, simtest.Point(v, 0, largest, 1, mean, deviation))
	}
	for range servers {
		w := serving.WorkerID(len(n.spec.Workers))
		n.spec.Workers = append(n.spec.Workers, serving.Worker{Name: fmt.Sprintf("w%d", w)})
		n.place = append(n.place, static.Instance{Worker: w, Stage: id, Variants: []serving.VariantID{v}})
	}
	return id
}

// measured are means over the queries of a run, in seconds.
type measured struct{ wait, response float64 }

// run simulates the network and returns means by the priority of queries.
func (n *network) run(t *testing.T, r route.Router, b batch.Rule, noise truth.Noise,
	source workload.Source) map[int32]measured {
	t.Helper()
	believed, err := profile.NewTable(n.spec, n.measurements, profile.Mean)
	if err != nil {
		t.Fatal(err)
	}
	planner := &static.Planner{Profile: believed, Instances: n.place}
	first, err := planner.Plan(context.Background(), plan.Request{Spec: n.spec})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Config{
		Spec: n.spec, Profile: believed, Router: r, Batcher: b, Provides: planner.Provides(),
	})
	if err != nil {
		t.Fatal(err)
	}
	machines, err := truth.NewTable(n.spec, n.measurements, noise, workload.Rand(1, "service"))
	if err != nil {
		t.Fatal(err)
	}
	sums, counts := make(map[int32]measured), make(map[int32]float64)
	priorities := make(map[serving.QueryID]int32)
	if _, err = Run(Config{
		Spec: n.spec, Engine: e, Truth: machines, Initial: first, Warm: true, Source: source,
		Observe: func(now serving.Time, in []engine.Input, out []engine.Decision) {
			for i := range in {
				if in[i].Kind == engine.QueryArrived {
					priorities[in[i].Query.ID] = in[i].Query.Priority
				}
			}
			for i := range out {
				if d := &out[i]; d.Kind == engine.EndQuery {
					p := priorities[d.Query]
					delete(priorities, d.Query)
					s := sums[p]
					s.wait += d.Queue.Seconds()
					s.response += now.Sub(d.Arrived).Seconds()
					sums[p] = s
					counts[p]++
				}
			}
		},
	}); err != nil {
		t.Fatal(err)
	}
	for p, s := range sums {
		sums[p] = measured{s.wait / counts[p], s.response / counts[p]}
	}
	return sums
}

// tolerance is how far a simulated mean may be from theory.
const tolerance = 0.03

func agrees(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*want {
		t.Errorf("%s is %.5f, theory says %.5f (%+.2f %%)", what, got, want, 100*(got-want)/want)
	}
}

// classes is a Poisson source of queries of several priorities, 1 to len(share).
type classes struct {
	poisson
	share []float64
}

func (c *classes) Next() (workload.Arrival, bool) {
	a, ok := c.poisson.Next()
	x := c.rng.Float64()
	for k, s := range c.share {
		if a.Priority = int32(k + 1); x < s {
			break
		}
		x -= s
	}
	return a, ok
}

func arrivals(rate float64, n int) poisson {
	return poisson{rng: workload.Rand(3, "arrivals"), gap: 1e9 / rate, left: n}
}

const service = 10 * time.Millisecond

// M/G/1 with log-normal service times: Pollaczek and Khinchine's formula.
func TestGeneralServiceTimes(t *testing.T) {
	for _, c := range []struct{ rho, variation float64 }{{0.5, 0.3}, {0.8, 0.3}, {0.5, 1}, {0.7, 1}} {
		t.Run(fmt.Sprintf("%.0f%%, variation %v", 100*c.rho, c.variation), func(t *testing.T) {
			t.Parallel()
			n := newNetwork()
			n.station(1, 1, service, time.Duration(c.variation*float64(service)))
			source := arrivals(c.rho/service.Seconds(), longtest.Of(450_000, 700_000))
			got := n.run(t, route.NewFCFS(), batch.Single{}, truth.Lognormal, &source)[0]
			want := c.rho / (1 - c.rho) * (1 + c.variation*c.variation) / 2 * service.Seconds()
			agrees(t, "the mean wait", got.wait, want)
		})
	}
}

// M/G/1 with priorities that do not interrupt: Cobham's formula (A. Cobham, "Priority assignment in waiting line
// problems", Operations Research 2, 1954).
func TestPriorities(t *testing.T) {
	share := []float64{0.2, 0.3, 0.5}
	for _, variation := range []float64{0, 0.5} {
		t.Run(fmt.Sprint(variation), func(t *testing.T) {
			t.Parallel()
			n := newNetwork()
			n.station(1, 1, service, time.Duration(variation*float64(service)))
			const rho = 0.75
			source := classes{arrivals(rho/service.Seconds(), longtest.Of(600_000, 900_000)), share}
			got := n.run(t, route.NewFCFS(), batch.Single{}, truth.Lognormal, &source)
			residual := rho * (1 + variation*variation) / 2 * service.Seconds()
			above := 0.0
			for k, s := range share {
				want := residual / ((1 - above) * (1 - above - s*rho))
				agrees(t, fmt.Sprintf("the mean wait of priority %d", k+1), got[int32(k+1)].wait, want)
				above += s * rho
			}
		})
	}
}

// M/G/1 with vacations: a server that finds no query of the first class takes one of the second, which never runs out.
// To the first class each is a vacation. Its wait is that of M/G/1 and what is left of a vacation: E[V^2] / (2 E[V])
// (S. Fuhrmann and R. Cooper, "Stochastic decompositions in the M/G/1 queue with generalized vacations", Operations
// Research 33, 1985).
func TestVacations(t *testing.T) {
	for _, c := range []struct{ rho, variation float64 }{{0.6, 0}, {0.6, 0.5}} {
		t.Run(fmt.Sprintf("%.0f%%, variation %v", 100*c.rho, c.variation), func(t *testing.T) {
			t.Parallel()
			n := newNetwork()
			n.station(1, 1, service, time.Duration(c.variation*float64(service)))
			const all = 1.04 // so that ever more of the second class wait
			queries := longtest.Of(60_000, 150_000)
			source := classes{arrivals(all/service.Seconds(), queries), []float64{c.rho / all, 1 - c.rho/all}}
			got := n.run(t, route.NewFCFS(), batch.Single{}, truth.Lognormal, &source)
			residual := (1 + c.variation*c.variation) / 2 * service.Seconds()
			agrees(t, "the mean wait of the first class", got[1].wait, c.rho*residual/(1-c.rho)+residual)
		})
	}
}

// M/D^[b]/1: a free server takes what waits, up to b at once, and a batch takes a constant time.
func TestBatchService(t *testing.T) {
	for _, c := range []struct {
		b   int
		rho float64
	}{{2, 0.5}, {4, 0.8}, {8, 0.6}, {8, 0.9}} {
		t.Run(fmt.Sprintf("%d at %.0f%%", c.b, 100*c.rho), func(t *testing.T) {
			t.Parallel()
			n := newNetwork()
			n.station(1, c.b, service, 0)
			rate := c.rho * float64(c.b) / service.Seconds()
			source := arrivals(rate, longtest.Of(120_000, 600_000))
			got := n.run(t, route.NewRoundRobin(), batch.EarlyDrop{}, truth.Exact, &source)[0]
			agrees(t, "the mean wait", got.wait, batchWait(c.b, rate, service.Seconds()))
		})
	}
}

// batchWait is the mean wait in M/D^[b]/1, from the chain of how many wait when a batch ends: an empty system waits for
// an arrival, which is served alone.
func batchWait(b int, rate, d float64) float64 {
	const states = 400
	arrived := make([]float64, states) // Poisson probabilities of a service
	arrived[0] = math.Exp(-rate * d)
	for k := 1; k < states; k++ {
		arrived[k] = arrived[k-1] * rate * d / float64(k)
	}
	p := make([]float64, states)
	p[0] = 1
	for range 4000 {
		next := make([]float64, states)
		for k, x := range p {
			left := max(k-b, 0)
			for a := 0; left+a < states; a++ {
				next[left+a] += x * arrived[a]
			}
		}
		p = next
	}
	waiting, cycle := 0.0, 0.0 // time-integral of the number that waits, and length, of a service with its idle time
	for k, x := range p {
		waiting += x * (float64(max(k-b, 0))*d + rate*d*d/2)
		cycle += x * d
	}
	cycle += p[0] / rate
	return waiting / cycle / rate
}

// The formula itself: with b = 1 it is M/D/1.
func TestBatchWaitOfOne(t *testing.T) {
	for _, rho := range []float64{0.3, 0.7} {
		if got, want := batchWait(1, rho, 1), rho/(1-rho)/2; math.Abs(got-want) > 1e-6 {
			t.Errorf("at %v: %v, want %v", rho, got, want)
		}
	}
}

// A tandem of M/M/1 and M/M/2: by Burke's theorem the departures of each are Poisson, so that times add up (Jackson).
func TestTandem(t *testing.T) {
	for _, rho := range []float64{0.4, 0.8} {
		t.Run(fmt.Sprintf("%.0f%%", 100*rho), func(t *testing.T) {
			t.Parallel()
			n := newNetwork()
			a := n.station(1, 1, service, 0)
			b := n.station(2, 1, 2*service, 0, a)
			n.station(1, 1, service/2, 0, b)
			source := arrivals(rho/service.Seconds(), longtest.Of(120_000, 600_000))
			got := n.run(t, route.NewFCFS(), batch.Single{}, truth.Exponential, &source)[0]
			d := service.Seconds()
			want := d*(1+mmcWait(1, rho)) + 2*d*(1+mmcWait(2, rho)) + d/2*(1+mmcWait(1, rho/2))
			agrees(t, "the mean time in the network", got.response, want)
		})
	}
}

// A query that goes through two M/M/1 queues at once and waits for both: (12 - rho)/8 times the time in one (R. Nelson
// and A. Tantawi, "Approximate analysis of fork/join synchronization in parallel queues", IEEE Transactions on
// Computers 37, 1988; exact for two). The fork and the join take almost no time. Independent queues would take 1.5
// times it, the slower of two: an upper bound, since branches share their arrivals.
func TestForkAndJoin(t *testing.T) {
	for _, rho := range []float64{0.3, 0.6, 0.8} {
		t.Run(fmt.Sprintf("%.0f%%", 100*rho), func(t *testing.T) {
			t.Parallel()
			n := newNetwork()
			fork := n.station(1, 1, time.Microsecond, 0)
			a := n.station(1, 1, service, 0, fork)
			b := n.station(1, 1, service, 0, fork)
			n.station(1, 1, time.Microsecond, 0, a, b)
			source := arrivals(rho/service.Seconds(), longtest.Of(120_000, 600_000))
			got := n.run(t, route.NewFCFS(), batch.Single{}, truth.Exponential, &source)[0]
			one := service.Seconds() / (1 - rho)
			agrees(t, "the mean time until both are done", got.response, (12-rho)/8*one)
			if got.response > 1.5*one || got.response < one {
				t.Errorf("%.5f is not between %.5f and %.5f", got.response, one, 1.5*one)
			}
		})
	}
}

// The source gives the classes of the tests above their shares.
func TestClassesHaveTheirShares(t *testing.T) {
	c := classes{poisson{rng: rand.New(rand.NewPCG(1, 2)), gap: 1, left: 100_000}, []float64{0.2, 0.3, 0.5}}
	counts := make(map[int32]int)
	for a, ok := c.Next(); ok; a, ok = c.Next() {
		counts[a.Priority]++
	}
	for k, want := range []int{20_000, 30_000, 50_000} {
		if n := counts[int32(k+1)]; n < want-600 || n > want+600 {
			t.Errorf("%d of priority %d, want about %d", n, k+1, want)
		}
	}
}
