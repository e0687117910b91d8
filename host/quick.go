package host

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/measure/profiler"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

const (
	// quickTime and quickSamples bound the measurement of one point when it is to be quick.
	quickTime    = 50 * time.Millisecond
	quickSamples = 20
	// shortestObjective is the shortest objective that is proposed: below it the noise of a busy machine decides.
	shortestObjective = 50 * time.Millisecond
	// room is how many times the latency of a lone query the proposed objective is: a query may wait for the batch that
	// runs, and then run in a larger one.
	room = 4
)

// tune returns the change of the settings of measurements, nil for none.
func (o *Options) tune() func(*profiler.Config) {
	if !o.Quick {
		return nil
	}
	return func(c *profiler.Config) {
		c.MaxTime, c.MinSamples, c.MaxSamples = quickTime, 3, quickSamples
	}
}

// Objectives proposes a latency objective for every app, by name, from measured latencies: several times that of a
// query that runs alone, through all stages one after the other, rounded up to one or two digits that people write.
func (p *Profiled) Objectives() map[string]time.Duration {
	out := make(map[string]time.Duration)
	spec := p.Spec()
	for a := range spec.Apps {
		out[spec.Apps[a].Name] = objectiveOf(spec, p.latencies, serving.AppID(a))
	}
	return out
}

// objectiveOf proposes the objective of one app.
func objectiveOf(spec *serving.Spec, latencies profile.Profile, a serving.AppID) time.Duration {
	total, held := time.Duration(0), time.Duration(0)
	for _, st := range spec.Apps[a].Stages {
		total += alone(spec, latencies, spec.Stages[st].Variants)
		if q := spec.Stages[st].Queue; q != nil {
			held += q.Delay // a query may be held back for so long
		}
	}
	return roundObjective(max(room*total+held, shortestObjective))
}

// alone is the latency of a single item on the slowest of some variants, on the fastest machine for it.
func alone(spec *serving.Spec, latencies profile.Profile, variants []serving.VariantID) time.Duration {
	slowest := time.Duration(0)
	for _, v := range variants {
		fastest := time.Duration(math.MaxInt64)
		for d := range spec.DeviceTypes {
			fastest = min(fastest, latencies.Latency(v, serving.DeviceTypeID(d), 1, 1))
		}
		if fastest < time.Hour {
			slowest = max(slowest, fastest)
		}
	}
	return slowest
}

// roundObjective rounds up to 1, 2 or 5 times a power of ten milliseconds.
func roundObjective(d time.Duration) time.Duration {
	for unit := time.Millisecond; ; unit *= 10 {
		for _, n := range []time.Duration{1, 2, 5} {
			if d <= n*unit {
				return n * unit
			}
		}
	}
}
