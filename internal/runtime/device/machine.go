package device

import (
	"context"
	"fmt"
	"slices"
)

// Machine is what this machine has.
type Machine struct {
	CPU          string        `json:"cpu"` // name of the processor
	Cores        int           `json:"cores"`
	MemoryBytes  int64         `json:"memory_bytes,omitempty"` // 0 where it is not known
	Accelerators []Accelerator `json:"accelerators"`
	// Note says why no accelerator is known; empty where there are some.
	Note string `json:"note,omitempty"`
}

// Accelerator is one accelerator and how it was at one moment.
type Accelerator struct {
	Index       int    `json:"index"` // in the order of nvidia-smi, which is that of the bus
	UUID        string `json:"uuid"`
	Name        string `json:"name"`
	Driver      string `json:"driver"`
	Capability  string `json:"compute_capability,omitempty"` // such as 9.0
	MemoryBytes int64  `json:"memory_bytes"`
	State       State  `json:"state"`
	// Processes are those that compute on it. The driver does not show those of other containers.
	Processes []Process `json:"processes,omitempty"`
}

// State is what changes of an accelerator. What the driver does not tell is 0, and Throttled is nil.
type State struct {
	MemoryUsedBytes int64 `json:"memory_used_bytes"`
	// ClockMHz is that of the multiprocessors, MostClockMHz the highest that it can have.
	ClockMHz       float64 `json:"clock_mhz,omitempty"`
	MostClockMHz   float64 `json:"most_clock_mhz,omitempty"`
	MemoryClockMHz float64 `json:"memory_clock_mhz,omitempty"`
	// Throttled lists what holds the clocks down at that moment, of the names in throttle.go.
	Throttled   []string `json:"throttled,omitempty"`
	Watts       float64  `json:"power_watts,omitempty"`
	LimitWatts  float64  `json:"power_limit_watts,omitempty"`
	Celsius     float64  `json:"temperature_celsius,omitempty"`
	Utilization float64  `json:"utilization,omitempty"` // part of the last moments in which something ran, 0 to 1
}

// Process is one process on an accelerator.
type Process struct {
	PID             int    `json:"pid"`
	Name            string `json:"name"`
	MemoryUsedBytes int64  `json:"memory_used_bytes"` // 0 where it is not known
}

// Hot reports whether something holds the clocks down that has to do with heat or power, so that times measured now are
// longer than they need be.
func (s *State) Hot() bool { return slices.ContainsFunc(s.Throttled, slows) }

// Read describes this machine. Where accelerators cannot be asked for, it describes the rest, and Note says why.
func Read(ctx context.Context, t Tool) Machine {
	m := Machine{CPU: CPUName(), Cores: cores(), MemoryBytes: memoryBytes(), Accelerators: []Accelerator{}}
	found, err := t.Accelerators(ctx)
	switch {
	case err != nil:
		m.Note = err.Error()
	case len(found) == 0:
		m.Note = fmt.Sprintf("%s lists no accelerator", t.name())
	default:
		m.Accelerators = found
	}
	return m
}

// Of returns the accelerator that an identifier of CUDA_VISIBLE_DEVICES names: an index, a UUID or its beginning.
func (m *Machine) Of(id string) (*Accelerator, bool) {
	for i := range m.Accelerators {
		if a := &m.Accelerators[i]; names(id, a) {
			return a, true
		}
	}
	return nil, false
}
