// Package scrooge finds the lowest cost at which machines of several types carry a graph of models within one objective
// of latency, from end to end (Scrooge, SoCC 2021, §3.3 and §3.4). Allocation says which types in which configurations
// and how much of each; placement then says which machines.
package scrooge

import (
	"time"
)

// Problem is what the allocation of one graph is made from (Table 5).
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
	Type  int // into Problem.Prices
	Batch int // items of a batch, >= 1
	Slots int // batches at once on the machine: the concurrency level, >= 1
	// Took is how long a batch takes while Slots of them run.
	Latency time.Duration
	// Burst is what the last item of one query waits for the batches of those before it, where a query sends more items
	// at once than a machine runs at once; 0 where they come one by one, as the paper takes them to.
	Burst time.Duration
	// Tag is the caller's, who finds the variant by it.
	Tag int
}

// Rate is what one machine carries in the mode, in items/s.
func (m *Mode) Rate() float64 { return float64(m.Batch*m.Slots) / m.Latency.Seconds() }

// longest is where waits for a batch end, short enough for sums of them.
const longest = time.Duration(1<<63-1) / (4 * MaxModules)

// Worst is the longest time an item spends at a machine in the mode to which so many items/s are sent: while its batch
// forms and while it runs (§3.3; for a machine that is not full, Eq. 3). rate is in (0, m.Rate()].
//
// Deviation: a batch of one has nothing to wait for, whatever the rate (footnote 1 of the paper), where Eq. 3 would
// have it wait for the item after it and so refuse every low rate. It is given the wait of a full machine, until a slot
// is free.
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
	Latency time.Duration
	// Bound is a cost that no allocation is below, in $/h; Proven tells that one was found.
	Bound  float64
	Proven bool
}

// Allocated is what one module gets.
type Allocated struct {
	Uses    []Use
	Budget  time.Duration // its part of the objective: the longest of its Uses' worst latencies fits into it
	Arrives time.Duration // the longest time before an item reaches the module
}

// Use is one machine, or several alike, in one mode.
type Use struct {
	Mode  int     // into Module.Modes
	Count int     // machines, >= 1
	Rate  float64 // items/s sent to each of them; a machine that gets less than the mode's Rate is a partial one
}
