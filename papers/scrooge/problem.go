// Package scrooge finds the lowest cost at which machines of several types carry a graph of models within one
// end-to-end latency objective (Scrooge, SoCC 2021, §3.3 and §3.4). Allocation says which types in which
// configurations, and how much of each; placement then says which machines.
package scrooge

import (
	"time"
)

// Problem is the input of the allocation of one graph (Table 5).
type Problem struct {
	SLO     time.Duration // from the arrival of a query to the end of its last module
	Prices  []float64     // by machine type, in $/h
	Modules []Module      // in a topological order
}

// Module is one stage of the graph.
type Module struct {
	Rate  float64 // items/s that reach it, >= 0
	Next  []int   // modules fed by it, all later in the order
	Modes []Mode  // the configurations it can run in, on all types
}

// Mode is one configuration of a module on a machine type: a point of its throughput-latency profile (§3.2).
type Mode struct {
	Type  int // index into Problem.Prices
	Batch int // items of a batch, >= 1
	Slots int // batches at once on the machine: the concurrency level, >= 1
	// Latency is how long a batch takes while Slots of them run.
	Latency time.Duration
	// Burst is how long the last item of a query waits for the batches of the items before it, if a query sends more
	// items at once than a machine runs at once; 0 if items come one by one, as the paper assumes.
	Burst time.Duration
	// Tag belongs to the caller. The planner keeps the VariantID in it.
	Tag int
}

// Rate returns what one machine carries in the mode, in items/s.
func (m *Mode) Rate() float64 { return float64(m.Batch*m.Slots) / m.Latency.Seconds() }

// longest bounds the wait for a batch, so that sums of waits do not overflow.
const longest = time.Duration(1<<63-1) / (4 * MaxModules)

// WorstLatency returns the longest time that an item spends at a machine in the mode to which so many items/s are sent:
// while its batch fills and while it runs (§3.3; for a machine that is not full, Eq. 3). rate is in (0, m.Rate()]; m
// must be valid (Problem.Check).
//
// Deviation: a batch of one has nothing to wait for, whatever the rate (footnote 1 of the paper). Eq. 3 would let it
// wait for the next item and so refuse every low rate. Here it waits as at a full machine, until a slot is free.
func (m *Mode) WorstLatency(rate float64) time.Duration {
	if m.Batch == 1 {
		rate = m.Rate()
	}
	return m.Latency + m.Burst + time.Duration(min(float64(m.Batch)/rate*float64(time.Second), float64(longest)))
}

// Allocation is the answer to a problem (Table 6).
type Allocation struct {
	Modules []Allocated // by module
	Cost    float64     // $/h, each machine counted by the part of it that is used
	// of the longest path
	Latency time.Duration
	// Bound is a cost in $/h that no allocation is below. Proven says that Cost is Bound, up to rounding.
	Bound  float64
	Proven bool
}

// Allocated is the machines and the budget of one module.
type Allocated struct {
	Uses    []Use
	Budget  time.Duration // its part of the objective, at least the worst latency of its Uses
	Arrives time.Duration // the longest time before an item reaches the module
}

// Use is one machine, or several alike, in one mode.
type Use struct {
	Mode  int     // index into Module.Modes
	Count int     // machines, >= 1
	Rate  float64 // items/s sent to each machine; one that gets less than the mode's Rate is a partial one
}
