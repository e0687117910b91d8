package experiment

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/kairos"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
	"github.com/sluice-serving/sluice/sim/truth"
)

// Precision of trials. Pools share their arrivals, so that their difference is known better than either throughput.
const (
	trialQueries    = 3000 // of one run
	trialRuns       = 4    // at one rate, at most
	trialResolution = 0.02
)

// Trials tries pools for a planner: machines behave as the planner believes, with the scatter that was measured.
type Trials struct {
	// System has the rules that are simulated; its planner and scaler do not count.
	System systems.System
	// Known is what is known where a question does not say it: the scatter of run times around their mean, and the
	// latencies that were made of it. Without both, run times are as believed, without scatter.
	Known plan.Known
}

// known returns what is known for a question.
func (t Trials) known(asked *plan.Known) *plan.Known {
	if asked != nil {
		return asked
	}
	return &t.Known
}

// Best implements kairos.Trial. It finds the throughput of the first pool, and that of every other that carries more
// than the best before it.
func (t Trials) Best(ctx context.Context, c kairos.Contest) (best int, err error) {
	pools, err := t.pools(&c)
	if err != nil {
		return 0, err
	}
	most := 0.0
	for i, p := range c.Pools {
		start := p.Rate
		if most > 0 {
			start = most * (1 + trialResolution/2)
			carried, err := pools.Carries(ctx, p.Pool, start)
			if err != nil {
				return 0, err
			}
			if !carried {
				continue
			}
		}
		got, err := pools.Throughput(ctx, p.Pool, start)
		if err != nil {
			return 0, err
		}
		if got.Rate > most {
			best, most = i, got.Rate
		}
	}
	return best, nil
}

// pools makes the pools of a contest.
func (t Trials) pools(c *kairos.Contest) (*Pools, error) {
	points := believed(c)
	beliefs, err := profile.NewTable(c.Spec, points, profile.Mean)
	if err != nil {
		return nil, err
	}
	machines, err := truth.NewTable(c.Spec, scattered(points, t.known(c.Known)), truth.Lognormal, nil)
	if err != nil {
		return nil, err
	}
	return &Pools{
		Env: &Environment{Spec: c.Spec, Beliefs: beliefs, Truth: func(r *rand.Rand) (truth.Model, error) {
			return machines.WithRand(r), nil
		}},
		System: t.System, Market: c.Market, Variant: c.Variant, Queries: trialQueries, Runs: trialRuns,
		Resolution: trialResolution, NoBounds: true, Late: c.Late,
	}, nil
}

// neverInTime is the run time, as a multiple of the objective, of sizes that a machine cannot run at all.
const neverInTime = 100

// believed returns what is believed of the run times of a contest's queries, by type and size.
func believed(c *kairos.Contest) (out serving.Measurements) {
	for _, x := range c.Market.Types {
		for class, took := range x.Latency {
			items, _ := c.Market.Mix.Class(class)
			out.Latency = append(out.Latency, serving.LatencyPoint{
				Variant: c.Variant, DeviceType: x.Device, Items: items, Concurrency: 1,
				Mean: min(took, neverInTime*c.Market.Within),
			})
		}
	}
	return out
}

// scattered returns points with the measured means and deviations in place of what is believed, both relative to the
// belief that the measurement led to. Points near which nothing was measured stay as they are.
func scattered(points serving.Measurements, known *plan.Known) (out serving.Measurements) {
	for _, p := range points.Latency {
		if m := near(p, known); m != nil {
			scale := float64(p.Mean) / float64(known.Profile.Latency(m.Variant, m.DeviceType, m.Items, 1))
			p.StdDev = time.Duration(scale * float64(m.StdDev))
			p.Mean = max(time.Duration(scale*float64(m.Mean)), 1)
		}
		out.Latency = append(out.Latency, p)
	}
	return out
}

// near returns the measured point of the least size that is not below a point's, otherwise of the largest; nil for
// none.
func near(p serving.LatencyPoint, known *plan.Known) *serving.LatencyPoint {
	var at *serving.LatencyPoint
	if known.Profile == nil {
		return nil
	}
	for i := range known.Measurements.Latency {
		m := &known.Measurements.Latency[i]
		if m.Variant != p.Variant || m.DeviceType != p.DeviceType || m.Concurrency != 1 ||
			known.Profile.Latency(m.Variant, m.DeviceType, m.Items, 1) >= profile.Unknown {
			continue
		}
		switch {
		case at == nil, m.Items >= p.Items && (at.Items < p.Items || m.Items < at.Items),
			at.Items < p.Items && m.Items > at.Items:
			at = m
		}
	}
	return at
}
