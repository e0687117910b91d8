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

// watched runs the rule over Poisson arrivals at a rate by time, in queries/s, with the plan in force made for the last
// demand asked for. It returns when plans were asked for, and for which demand.
func watched(span time.Duration, rate func(s float64) float64) (at []serving.Time, asked []float64) {
	rng := rand.New(rand.NewPCG(1, 1))
	m := monitor.NewRates(1)
	v := &View{
		Spec:    &serving.Spec{Apps: []serving.App{{SLO: serving.SLO{Latency: time.Second}}}},
		Monitor: &m.View, Waiting: []int{0}, Plan: &plan.Plan{Demand: []float64{rate(0)}},
	}
	x := &Anticipate{}
	arrival, wake := serving.Time(0), serving.Time(0)
	for now := serving.Time(0); now < serving.Time(span); {
		if arrival <= wake {
			now = arrival
			m.Add(now, 0)
			arrival = now.Add(time.Duration(rng.ExpFloat64() / rate(now.Seconds()) * 1e9))
			continue
		}
		now = wake
		v.Now = now
		var replan bool
		if replan, wake = x.Decide(v); replan {
			rates := []float64{0}
			x.Demand(v, rates)
			at, asked = append(at, now), append(asked, rates[0])
			v.LastRequest, v.Plan = now, &plan.Plan{Demand: rates}
		}
	}
	return at, asked
}

// A demand that stays the same is planned for at the interval, for little more than it is.
func TestAnticipateSteadyDemand(t *testing.T) {
	at, asked := watched(60*time.Second, func(float64) float64 { return 200 })
	if len(at) > 13 {
		t.Errorf("%d plans in a minute: %v", len(at), at)
	}
	for k, r := range asked {
		most := 240.0
		if at[k] < serving.Time(10*time.Second) {
			most = 280 // rates of single seconds vary by chance
		}
		if r < 190 || r > most {
			t.Errorf("at %v for %.0f/s, the demand is 200/s", at[k], r)
		}
	}
}

// A few queries that come close together at the start are no demand to be ready for seconds later.
func TestAnticipateForgetsTheStart(t *testing.T) {
	m := monitor.NewRates(1)
	v := &View{
		Spec:    &serving.Spec{Apps: []serving.App{{SLO: serving.SLO{Latency: time.Second}}}},
		Monitor: &m.View, Waiting: []int{0}, Plan: &plan.Plan{Demand: []float64{40}},
	}
	x := &Anticipate{}
	for k := range 120 {
		v.Now = serving.Time(10*time.Millisecond) + serving.Time(k)*serving.Time(25*time.Millisecond)
		if k < 4 {
			v.Now = serving.Time(10*time.Millisecond) + serving.Time(k)*serving.Time(time.Millisecond)
		}
		m.Add(v.Now, 0)
		x.Decide(v)
	}
	rates := []float64{0}
	if x.Demand(v, rates); rates[0] < 40 || rates[0] > 60 {
		t.Errorf("%.0f/s after %v of 40/s", rates[0], v.Now)
	}
}

// A demand that jumps is seen within a second and a half, one that rises is planned for ahead, and one that falls is
// given up after some seconds.
func TestAnticipateChanges(t *testing.T) {
	at, asked := watched(30*time.Second, func(s float64) float64 {
		if s < 10.5 {
			return 100
		}
		return 300
	})
	seen := serving.Never
	for k := range at {
		if asked[k] > 250 {
			seen = min(seen, at[k])
		}
	}
	if seen > serving.Time(12*time.Second) {
		t.Errorf("a jump at 10.5 s is planned for at %v: %v %v", seen, at, asked)
	}
	at, asked = watched(40*time.Second, func(s float64) float64 { return max(400-math.Abs(s-15)*30, 50) })
	for k := range at {
		s := at[k].Seconds()
		if now := 400 - (15-s)*30; s > 6 && s < 14 && asked[k] < 0.9*now { // it comes by chance
			t.Errorf("at %.1f s a demand that rises from %.0f/s is planned for with %.0f/s", s, now, asked[k])
		}
	}
	if last := asked[len(asked)-1]; last > 100 {
		t.Errorf("half a minute after the peak of 400/s, 50/s are planned for with %.0f/s", last)
	}
}

// Sizes that are others than planned for lead to a plan as soon as they are known, and those that are as planned to
// none.
func TestAnticipateSizes(t *testing.T) {
	for _, c := range []struct {
		planned serving.Mix
		asks    bool
	}{
		{serving.Mix{}, true}, // of one item each: nobody has said how large they are
		{serving.Mix{Sizes: []int32{2, 8}, Shares: []float64{0.5, 0.5}}, false},
		{serving.Mix{Sizes: []int32{2, 8}, Shares: []float64{0.9, 0.1}}, true},
	} {
		rng := rand.New(rand.NewPCG(1, 2))
		m := monitor.NewRates(1)
		v := &View{
			Spec:    &serving.Spec{Apps: []serving.App{{SLO: serving.SLO{Latency: time.Second}}}},
			Monitor: &m.View, Waiting: []int{0}, LastRequest: 1,
			Plan: &plan.Plan{Demand: []float64{100}, Capacity: []float64{500}, Mixes: []serving.Mix{c.planned}},
		}
		x := &Anticipate{}
		asked := serving.Never
		for k := range 400 {
			v.Now = serving.Time(k+1) * serving.Time(10*time.Millisecond)
			m.Add(v.Now, 0)
			m.AddSize(0, 2+6*int32(rng.IntN(2)))
			if replan, _ := x.Decide(v); replan {
				asked = v.Now
				break
			}
		}
		if (asked < serving.Never) != c.asks || c.asks && asked > serving.Time(2*time.Second) {
			t.Errorf("planned for %v: a plan is asked for at %v, want one: %v", c.planned, asked, c.asks)
		}
	}
}
