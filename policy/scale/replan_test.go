package scale

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/monitor"
)

// drive feeds Poisson arrivals of the given rate by second and returns the times at which r asked for a plan. Each plan
// comes at once, for the demand asked for with 5 % head-room.
func drive(t *testing.T, r Replan, seed uint64, rates []float64) (asked []serving.Time, planned []float64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 5))
	m := monitor.NewRates(1)
	spec := &serving.Spec{Apps: []serving.App{{SLO: serving.SLO{Latency: 300 * time.Millisecond}}}}
	v := View{
		Spec: spec, Monitor: &m.View, Waiting: []int{0}, Plan: &plan.Plan{
			Capacity: []float64{rates[0] * 1.05}, Demand: []float64{rates[0] * 1.05},
		},
	}
	next, wake := serving.Time(0), serving.Time(1)
	demand := make([]float64, 1)
	for end := serving.Time(len(rates)) * 1e9; min(next, wake) < end; {
		if next <= wake {
			m.Add(next, 0)
			next += max(1, serving.Time(rng.ExpFloat64()/rates[min(int(next/1e9), len(rates)-1)]*1e9))
			continue
		}
		v.Now = wake
		ask, again := r.Decide(&v)
		if again <= v.Now {
			t.Fatalf("at %v asked to be called again at %v", v.Now, again)
		}
		if ask {
			r.Demand(&v, demand)
			v.LastRequest = v.Now
			v.Plan = &plan.Plan{Capacity: []float64{demand[0] * 1.05}, Demand: []float64{demand[0] * 1.05}}
			asked, planned = append(asked, v.Now), append(planned, demand[0])
		}
		wake = again
	}
	return asked, planned
}

func steps(parts ...float64) []float64 { // rate, seconds, rate, seconds ...
	var out []float64
	for i := 0; i < len(parts); i += 2 {
		for range int(parts[i+1]) {
			out = append(out, parts[i])
		}
	}
	return out
}

// A step of the load leads to a request within a second, and at most three requests lead to a plan that covers it. A
// rule without bursts waits for its interval.
func TestBurst(t *testing.T) {
	for seed := range uint64(20) {
		asked, planned := drive(t, Replan{Bursts: true}, seed, steps(100, 15, 400, 10))
		first := -1
		for k, at := range asked {
			if at >= 15e9 {
				first = k
				break
			}
		}
		if first < 0 || asked[first] > 16e9 {
			t.Fatalf("seed %d: the burst at 15s was answered at %v", seed, asked)
		}
		if last := planned[len(planned)-1]; math.Abs(last-400) > 60 {
			t.Errorf("seed %d: the last plan before 25s is for %.0f queries/s, the load is 400", seed, last)
		}
		if n := len(asked) - first; n > 3 {
			t.Errorf("seed %d: %d plans for one burst: %v", seed, n, asked)
		}
		if asked, _ := drive(t, Replan{}, seed, steps(100, 15, 400, 10)); len(asked) > 0 {
			t.Errorf("seed %d: without bursts asked at %v, before the interval", seed, asked)
		}
	}
}

// A steady load is no burst: in ten minutes of it, requests beyond the periodic ones are rare.
func TestSteadyLoadIsNoBurst(t *testing.T) {
	extra := 0
	for seed := range uint64(10) {
		asked, _ := drive(t, Replan{Bursts: true, Interval: 10 * time.Second}, seed, steps(200, 60))
		extra += max(0, len(asked)-5)
	}
	if extra > 30 {
		t.Errorf("%d requests beyond the periodic ones in 10 minutes at a constant 200 queries/s", extra)
	}
	t.Logf("%d requests beyond the periodic ones in 10 minutes", extra)
}

// Demand that the plan in force was made for, shed or not, is no overload. A backlog beyond the objective is.
func TestOverloaded(t *testing.T) {
	m := monitor.NewRates(1)
	for k := range serving.Time(500) {
		m.Add(k*2e6, 0) // 500/s
	}
	v := View{
		Now: 1e9, Spec: &serving.Spec{
			Apps: []serving.App{{SLO: serving.SLO{Latency: 100 * time.Millisecond}}},
		}, Monitor: &m.View, Waiting: []int{0},
	}
	v.Plan = &plan.Plan{Capacity: []float64{300}, Demand: []float64{520}, Shed: []float64{200}}
	if Overloaded(&v) {
		t.Error("the plan was made for more than this")
	}
	v.Waiting[0] = 40
	if Overloaded(&v) {
		t.Error("what waits is shed on purpose")
	}
	v.Plan = &plan.Plan{Capacity: []float64{600}, Demand: []float64{520}}
	if Overloaded(&v) {
		t.Error("40 queries are served in 67 ms")
	}
	v.Waiting[0] = 70
	if !Overloaded(&v) {
		t.Error("70 queries take 117 ms, the objective is 100 ms")
	}
	v.Waiting[0], v.Plan = 0, &plan.Plan{Capacity: []float64{400}, Demand: []float64{400}}
	if !Overloaded(&v) {
		t.Error("500/s on a plan for 400/s")
	}
}

// A worker that is lost or back leads to one request at once.
func TestLostWorkerLeadsToOneRequest(t *testing.T) {
	m := monitor.NewRates(1)
	v := View{
		Now: 5e9, Spec: &serving.Spec{Apps: []serving.App{{SLO: serving.SLO{Latency: 1e9}}}}, Monitor: &m.View,
		Waiting: []int{0}, Plan: &plan.Plan{}, BasisChanged: 5e9, LastRequest: 1e9,
	}
	if ask, _ := (Replan{}).Decide(&v); !ask {
		t.Error("a shift is not asked about")
	}
	v.LastRequest, v.Now = 5e9, 6e9
	if ask, again := (Replan{}).Decide(&v); ask || again != 35e9 {
		t.Errorf("asked %v, again at %v", ask, again)
	}
}
