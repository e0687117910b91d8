package serving

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Spec is the world a run starts from: machines, apps, stages and variants as plain data. It is read-only once
// validated and is shared by planners, the engine and both drivers.
type Spec struct {
	DeviceTypes []DeviceType
	Workers     []Worker
	Apps        []App
	Stages      []Stage
	Variants    []Variant
}

// DeviceType is a kind of machine or accelerator share with a price and capacities.
type DeviceType struct {
	Name         string
	PricePerHour float64 // $/h
	Cores        int
	MemoryBytes  int64
	// Most is how many machines of the type can be had when machines are chosen; 0 sets no limit. It does not bound
	// Workers.
	MaxMachines int `json:"Most"`
	// Accelerators is how many accelerators a machine has.
	Accelerators int
	// Part marks a share of a machine that an instance gets by itself, not a machine (INFless §3.2: instances of one
	// function may differ in it): Cores of its threads, Percent of one of its accelerators, and MemoryBytes. No worker
	// is of such a type.
	Part    bool
	Percent int // of one accelerator, in [0, 100]; of parts only
}

// Worker is one machine of a device type.
type Worker struct {
	Name       string
	DeviceType DeviceTypeID
}

// LatePolicy says what happens to a query that can no longer meet its deadline while it still waits.
type LatePolicy uint8

const (
	// DropLate gives the query up at the first instant at which even the fastest way of serving it would end after its
	// deadline (Proteus §4, Scrooge §3.6, INFless §3.2).
	DropLate LatePolicy = iota
	// ServeLate serves it all the same (RAMSIS §4.3.1).
	ServeLate
)

// String returns the name used in sluice.yaml.
func (p LatePolicy) String() string {
	if p == ServeLate {
		return "serve-late"
	}
	return "drop"
}

// SLO is a latency objective: the given percentile of an app's queries answers within Latency.
type SLO struct {
	Latency    time.Duration
	Percentile float64 // in (0, 100]
}

// App is what a client calls: an objective and a graph of stages.
type App struct {
	Name   string
	SLO    SLO
	Late   LatePolicy
	GiveUp time.Duration // with ServeLate: how long after its deadline a query may still start; 0 means for ever
	// ColdWait is how long after its arrival a query may still start that found nothing ready, where the scaler lets
	// apps go that nobody calls: such a query waits for a start, which takes longer than most objectives. 0 leaves it
	// to Late.
	ColdWait time.Duration
	// Slack is kept free before every deadline, for what profiles do not know of: the way to a query and back.
	Slack      time.Duration
	Weight     float64   // importance relative to the other apps, > 0
	Mix        Mix       // sizes of queries to expect before any was seen
	Floor      float64   // planners choose no variant of lower accuracy for the app; 0 for none
	QueueLimit int       // queries that may wait (all stages together) before new ones are refused; > 0
	Stages     []StageID // in a topological order; the first is the only source
	// Closed marks an app that takes no queries any more; it stays, so that identifiers keep their meaning.
	Closed bool
	// Least and Most bound the instances of each stage, for planners that choose their number. 0 sets no bound.
	MinInstances int `json:"Least"`
	MaxInstances int `json:"Most"`
}

// Drops tells whether a query of the app that waits too long is dropped at some time.
func (a *App) Drops() bool { return a.Late == DropLate || a.GiveUp > 0 || a.ColdWait > 0 }

// Stage is one step of an app: a task that several variants can do. One stage per app is the usual case.
type Stage struct {
	Name     string
	App      AppID
	Variants []VariantID // ordered as configured
	Next     []Edge      // stages fed by this one
	Joins    int         // number of edges that lead here; a stage with more than one waits for all of them
	// Stateful marks a stage that keeps something from query to query of a stream (Scrooge §3.1): it serves the queries
	// of one stream one at a time, in the order of their arrival.
	Stateful bool
}

// Edge hands the result of one stage to another.
type Edge struct {
	To     StageID
	FanOut float64 // expected items sent per item served, >= 0; a run may report the real number
	// Rows names the output tensor of a live run whose rows become the items of the next stage: as many as there are
	// rows. Empty hands every item on as one.
	Rows string
}

// Variant is a trained model that can answer a stage.
type Variant struct {
	Name        string
	Stage       StageID
	Accuracy    float64 // in [0, 1]; what the profile or its author says
	Version     string  // version directory in the model repository; empty when there is only one
	MaxBatch    int     // largest number of items the model accepts in one run, >= 1
	MemoryBytes int64   // of the model itself; 0 when not known
	ItemBytes   int64   // that every item of a batch takes besides; 0 when not known
	Retired     bool    // another version has taken its place: no plan uses it any more
}

// Hosts lists the workers that have room for a part of a machine, if for nothing besides.
func (s *Spec) Hosts(part DeviceTypeID) (out []WorkerID) {
	d := &s.DeviceTypes[part]
	for w := range s.Workers {
		has := &s.DeviceTypes[s.Workers[w].DeviceType]
		if d.Cores <= has.Cores && (d.Percent == 0 || has.Accelerators > 0) &&
			(has.MemoryBytes == 0 || d.MemoryBytes <= has.MemoryBytes) {
			out = append(out, WorkerID(w))
		}
	}
	return out
}

// Source returns the stage at which queries of app a enter.
func (s *Spec) Source(a AppID) StageID { return s.Apps[a].Stages[0] }

// Validate reports every inconsistency of the tables, each with the path of the offending field.
func (s *Spec) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for i, d := range s.DeviceTypes {
		if !(d.PricePerHour >= 0) || math.IsInf(d.PricePerHour, 0) {
			bad("device_types[%d] %q: price_per_hour is %v, want a finite number >= 0", i, d.Name, d.PricePerHour)
		}
		if d.Accelerators < 0 || d.Percent < 0 || d.Percent > 100 || d.Part && d.Accelerators > 0 || !d.Part &&
			d.Percent > 0 {
			bad("device_types[%d] %q: %d accelerators and %d per cent of one: machines have at least 0 and no per "+
				"cent, parts none and 0 to 100", i, d.Name, d.Accelerators, d.Percent)
		}
		if d.MaxMachines < 0 {
			bad("device_types[%d] %q: most is %d, want at least 0", i, d.Name, d.MaxMachines)
		}
	}
	for i, w := range s.Workers {
		if w.DeviceType < 0 || int(w.DeviceType) >= len(s.DeviceTypes) {
			bad("workers[%d] %q: device type %d does not exist", i, w.Name, w.DeviceType)
		} else if s.DeviceTypes[w.DeviceType].Part {
			bad("workers[%d] %q: device type %q is a part of a machine", i, w.Name, s.DeviceTypes[w.DeviceType].Name)
		}
	}
	for i, v := range s.Variants {
		if v.Stage < 0 || int(v.Stage) >= len(s.Stages) {
			bad("variants[%d] %q: stage %d does not exist", i, v.Name, v.Stage)
		}
		if !(v.Accuracy >= 0 && v.Accuracy <= 1) {
			bad("variants[%d] %q: accuracy is %v, want a number in [0, 1]", i, v.Name, v.Accuracy)
		}
		if v.MaxBatch < 1 {
			bad("variants[%d] %q: max_batch is %d, want at least 1", i, v.Name, v.MaxBatch)
		}
	}
	joins := make([]int, len(s.Stages))
	for i, st := range s.Stages {
		if len(st.Variants) == 0 {
			bad("stages[%d] %q: has no variant", i, st.Name)
		}
		if open := func(v VariantID) bool {
			return v >= 0 && int(v) < len(s.Variants) && !s.Variants[v].Retired
		}; len(st.Variants) > 0 && !slices.ContainsFunc(st.Variants, open) {
			bad("stages[%d] %q: all its variants are retired", i, st.Name)
		}
		for _, v := range st.Variants {
			if v < 0 || int(v) >= len(s.Variants) || s.Variants[v].Stage != StageID(i) {
				bad("stages[%d] %q: variant %d does not belong to it", i, st.Name, v)
			}
		}
		for _, e := range st.Next {
			if e.To < 0 || int(e.To) >= len(s.Stages) || s.Stages[e.To].App != st.App {
				bad("stages[%d] %q: next stage %d does not exist in its app", i, st.Name, e.To)
				continue
			}
			if !(e.FanOut >= 0) || math.IsInf(e.FanOut, 0) {
				bad("stages[%d] %q: fan_out to %q is %v, want a finite number >= 0", i, st.Name, s.Stages[e.To].Name,
					e.FanOut)
			}
			joins[e.To]++
		}
	}
	for i, a := range s.Apps {
		if a.SLO.Latency <= 0 {
			bad("apps[%d] %q: slo.latency is %v, want more than 0", i, a.Name, a.SLO.Latency)
		}
		if !(a.SLO.Percentile > 0 && a.SLO.Percentile <= 100) {
			bad("apps[%d] %q: slo.percentile is %v, want a number in (0, 100]", i, a.Name, a.SLO.Percentile)
		}
		if a.QueueLimit < 1 {
			bad("apps[%d] %q: queue_limit is %d, want at least 1", i, a.Name, a.QueueLimit)
		}
		if err := a.Mix.Validate(); err != nil {
			bad("apps[%d] %q: mix: %w", i, a.Name, err)
		}
		if a.MinInstances < 0 || a.MaxInstances < 0 || a.MaxInstances > 0 && a.MinInstances > a.MaxInstances || a.ColdWait < 0 {
			bad("apps[%d] %q: %d to %d instances, cold wait %v: want 0 <= least <= most and no negative time", i,
				a.Name, a.MinInstances, a.MaxInstances, a.ColdWait)
		}
		if !(a.Weight > 0) {
			bad("apps[%d] %q: weight is %v, want more than 0", i, a.Name, a.Weight)
		}
		if !(a.Floor >= 0 && a.Floor <= 1) {
			bad("apps[%d] %q: accuracy floor is %v, want a number in [0, 1]", i, a.Name, a.Floor)
		}
		if len(a.Stages) == 0 {
			bad("apps[%d] %q: has no stage", i, a.Name)
		}
		place := make(map[StageID]int, len(a.Stages))
		for at, st := range a.Stages {
			if st < 0 || int(st) >= len(s.Stages) || s.Stages[st].App != AppID(i) {
				bad("apps[%d] %q: stage %d does not belong to it", i, a.Name, st)
				continue
			}
			place[st] = at
			if (joins[st] == 0) != (at == 0) {
				bad("apps[%d] %q: stage %q must be fed by an edge exactly when it is not the first", i, a.Name,
					s.Stages[st].Name)
			}
			if joins[st] != s.Stages[st].Joins {
				bad("apps[%d] %q: stage %q counts %d incoming edges, there are %d", i, a.Name, s.Stages[st].Name,
					s.Stages[st].Joins, joins[st])
			}
		}
		for st, at := range place {
			for _, e := range s.Stages[st].Next {
				if to, ok := place[e.To]; ok && to <= at {
					bad("apps[%d] %q: edge %q -> %q goes backwards: stages must be in topological order", i, a.Name,
						s.Stages[st].Name, s.Stages[e.To].Name)
				}
			}
		}
	}
	return errors.Join(errs...)
}
