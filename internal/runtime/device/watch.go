package device

import (
	"context"
	"slices"
	"time"
)

// Seen is how an accelerator was while something was measured on it. What the driver does not tell is 0 or empty.
type Seen struct {
	Name        string `json:"name"`
	UUID        string `json:"uuid"`
	Driver      string `json:"driver"`
	MemoryBytes int64  `json:"memory_bytes"`
	Samples     int    `json:"samples"`
	// The clocks of the multiprocessors: the lowest while something ran, the mean of these, and the highest possible.
	LeastMHz float64 `json:"least_clock_mhz,omitempty"`
	MeanMHz  float64 `json:"mean_clock_mhz,omitempty"`
	MostMHz  float64 `json:"most_clock_mhz,omitempty"`
	// Throttled lists what held the clocks down at any time.
	Throttled       []string `json:"throttled,omitempty"`
	MeanWatts       float64  `json:"mean_watts,omitempty"`
	MostWatts       float64  `json:"most_watts,omitempty"`
	LimitWatts      float64  `json:"power_limit_watts,omitempty"`
	MostCelsius     float64  `json:"most_celsius,omitempty"`
	MostMemoryBytes int64    `json:"most_memory_used_bytes,omitempty"`

	busy int
}

// Hot reports whether heat or power held the clocks down: times that were measured are longer than they need be.
func (s *Seen) Hot() bool { return slices.ContainsFunc(s.Throttled, slows) }

// busyFrom is the utilization from which something runs. The clocks of an idle accelerator say nothing.
const busyFrom = 0.05

// add takes one more look into account.
func (s *Seen) add(a *Accelerator) {
	now := &a.State
	s.Name, s.UUID, s.Driver, s.MemoryBytes = a.Name, a.UUID, a.Driver, a.MemoryBytes
	s.MostMHz, s.LimitWatts = max(s.MostMHz, now.MostClockMHz), max(s.LimitWatts, now.LimitWatts)
	s.Samples++
	s.MostMemoryBytes = max(s.MostMemoryBytes, now.MemoryUsedBytes)
	s.MostCelsius, s.MostWatts = max(s.MostCelsius, now.Celsius), max(s.MostWatts, now.Watts)
	if now.Utilization < busyFrom {
		return
	}
	s.busy++
	mean := func(old, x float64) float64 { return old + (x-old)/float64(s.busy) }
	s.MeanMHz, s.MeanWatts = mean(s.MeanMHz, now.ClockMHz), mean(s.MeanWatts, now.Watts)
	if s.LeastMHz == 0 || now.ClockMHz < s.LeastMHz {
		s.LeastMHz = now.ClockMHz
	}
	for _, t := range now.Throttled {
		if !slices.Contains(s.Throttled, t) {
			s.Throttled = append(s.Throttled, t)
		}
	}
}

// Watch looks at an accelerator, by its identifier, at least once and every so often until stop is called, which
// returns what was seen. It returns no samples where the driver does not answer.
func Watch(ctx context.Context, t Tool, id string, every time.Duration) (stop func() Seen) {
	enough, cancel := context.WithCancel(ctx)
	ended := make(chan Seen, 1)
	go func() {
		var s Seen
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			if found, err := t.Accelerators(ctx); err == nil {
				m := Machine{Accelerators: found}
				if a, ok := m.Of(id); ok {
					s.add(a)
				}
			}
			select {
			case <-tick.C:
			case <-enough.Done():
				ended <- s
				return
			}
		}
	}()
	return func() Seen {
		cancel()
		return <-ended
	}
}
