package infless

import (
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/papers/infless/rules"
	"github.com/sluice-serving/sluice/serving"
)

// reference is the policy that the others are compared with.
const reference = "hybridhistogram"

// keepPolicy is a keep-alive policy with the parameter that trades cold starts for idle time: the tail percentile, or
// in minutes the window or the price of a cold start.
type keepPolicy struct {
	name  string
	at    float64
	sweep []float64 // values of the parameter for the trade-off curve
	make  func(at float64) rules.KeepAlive
}

// referenceIndex is the index of the reference in keepPolicies.
func referenceIndex() int {
	return slices.IndexFunc(keepPolicies, func(k keepPolicy) bool { return k.name == reference })
}

var keepPolicies = []keepPolicy{
	{reference, 0.99, tails, func(tail float64) rules.KeepAlive { return hybrid(0, tail) }},
	{reference + "-week", 0.99, tails, func(tail float64) rules.KeepAlive { return hybrid(days*24*time.Hour, tail) }},
	{"lsth-0.7", 0.99, tails, longShort(0.7)},
	{"lsth-0.5", 0.99, tails, longShort(0.5)},
	{"lsth-0.3", 0.99, tails, longShort(0.3)},
	{"keepalive", 5, []float64{
		1, 2, 5, 10, 20, 30, 45, 60, 90, 120, 180, 240, 360, 480,
	}, func(at float64) rules.KeepAlive {
		return &rules.FixedKeepAlive{For: minutes(at)}
	}},
	{"cheapest", rules.ColdPrice.Minutes(), []float64{
		2, 5, 10, 20, 30, 45, 60, 90, 120, 180, 240, 360, 480, 960,
	}, func(at float64) rules.KeepAlive {
		return rules.NewCheapest(minutes(at))
	}},
}

var tails = []float64{0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.999, 1}

func minutes(x float64) time.Duration { return time.Duration(x * float64(time.Minute)) }

func hybrid(tracked time.Duration, tail float64) rules.KeepAlive {
	k := rules.NewHybridHistogram(tracked)
	k.Tail = tail
	return k
}

func longShort(gamma float64) func(float64) rules.KeepAlive {
	return func(tail float64) rules.KeepAlive {
		k := rules.NewLSTH()
		k.Gamma, k.Tail = gamma, tail
		return k
	}
}

// coldIdle is the result of a policy on a trace: cold starts in per cent of the calls, and idle hours a day.
type coldIdle struct{ cold, idle float64 }

// policyResults are the results of keepPolicies on a trace, by index in keepPolicies.
type policyResults struct {
	chosen []coldIdle
	curve  [][]coldIdle // then by index in the policy's sweep
}

// evaluatePolicies replays calls under every policy, with its chosen parameter and with those of its sweep.
func evaluatePolicies(of string, calls []serving.Time) (out policyResults) {
	for _, k := range keepPolicies {
		out.chosen = append(out.chosen, evaluate(of, calls, func() rules.KeepAlive { return k.make(k.at) }))
		var curve []coldIdle
		for _, at := range k.sweep {
			curve = append(curve, evaluate(of, calls, func() rules.KeepAlive { return k.make(at) }))
		}
		out.curve = append(out.curve, curve)
	}
	return out
}

// evaluate replays calls under a policy: those of an app, which run for no time, or those of each of its instances,
// which are busy for whole minutes.
func evaluate(of string, calls []serving.Time, keepAlive func() rules.KeepAlive) coldIdle {
	const day, end = serving.Time(24 * time.Hour), days * serving.Time(24*time.Hour)
	if of == "app" {
		t := replay(keepAlive(), calls, 0, day, end)
		return coldIdle{t.coldPercent(), t.idleHoursPerDay()}
	}
	var sum coldCount
	for _, s := range callsByInstance(calls) {
		t := replay(keepAlive(), s, time.Minute, day, end)
		sum.calls, sum.cold, sum.idle, sum.span = sum.calls+t.calls, sum.cold+t.cold, sum.idle+t.idle, t.span
	}
	return coldIdle{sum.coldPercent(), sum.idleHoursPerDay()}
}

// idleAtColdRate returns the least idle time at which a policy has the given rate of cold starts, by linear
// interpolation along its curve; NaN where no point has as few.
func idleAtColdRate(curve []coldIdle, rate float64) float64 {
	best := math.NaN()
	for k, c := range curve {
		if c.cold <= rate && !(best <= c.idle) {
			best = c.idle
		}
		if k == 0 {
			continue
		}
		p := curve[k-1]
		if (p.cold-rate)*(c.cold-rate) < 0 {
			if h := p.idle + (c.idle-p.idle)*(p.cold-rate)/(p.cold-c.cold); !(best <= h) {
				best = h
			}
		}
	}
	return best
}
