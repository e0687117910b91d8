package host

import (
	"time"

	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

const (
	// quickTime and quickSamples bound the measurement of one point when it is to be quick.
	quickTime    = 50 * time.Millisecond
	quickSamples = 20
)

// Tune returns the change of the settings of measurements, nil for none.
func (o Options) Tune() func(*profiler.Config) {
	if !o.Quick {
		return nil
	}
	return func(c *profiler.Config) {
		c.MaxTime, c.MinSamples, c.MaxSamples = quickTime, 3, quickSamples
	}
}

// Objectives proposes a latency objective for every app, by name, from measured latencies.
func (p *Profiled) Objectives() map[string]time.Duration {
	out := make(map[string]time.Duration)
	spec := p.Spec()
	for a := range spec.Apps {
		out[spec.Apps[a].Name] = profile.Objective(spec, p.latencies, serving.AppID(a), 1)
	}
	return out
}
