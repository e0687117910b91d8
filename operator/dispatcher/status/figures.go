package status

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/host/server"
	"github.com/sluice-serving/sluice/internal/measure/board"
)

// App is how an app does on one cell, over the last minute.
type App struct {
	Rate       float64 // queries/s
	Violations *float64
	Accuracy   *float64 // nil where nothing was answered
	Dollars    float64  // $/h of its part of the machines
	Machines   int      // that hold an instance of it
	Instances  int      // ready ones of the stage that has fewest
	Ready      bool
	Percentile float64
	Latency    time.Duration
	Demand     float64  // that the plan was made for
	Shed       float64  // queries/s that the plan does not serve
	Planned    bool     // the plan has instances of it
	Broken     []Broken // variants that cannot be loaded
}

// Broken is a variant that cannot be loaded, and why: "" where nobody said.
type Broken struct{ Variant, Why string }

// whole estimates how an app does on all of its cells from one that has a share of it: queries are given to them by
// chance, and machines by share.
func (a App) whole(share float64) App {
	if share == 1 {
		return a
	}
	a.Rate, a.Dollars, a.Demand, a.Shed = a.Rate/share, a.Dollars/share, a.Demand/share, a.Shed/share
	a.Machines = int(math.Round(float64(a.Machines) / share))
	a.Instances = int(math.Round(float64(a.Instances) / share))
	return a
}

// Cell is how a cell does.
type Cell struct {
	Apps     map[string]App
	Machines map[string]int // ready ones by type
	Plan     int            // the number of the one in force; 0 for none
	Why      string
	Planned  time.Time
}

// Of reads a run's figures. rates are in queries/s, by app; unfetched says why models could not be fetched, by name.
func Of(s *server.Server, rates map[string]float64, unfetched map[string]string) Cell {
	o, past, ready, machines := s.Overview(), s.Past(), s.ReadyApps(), s.Machines()
	out := Cell{Apps: make(map[string]App, len(o.Apps)), Machines: make(map[string]int)}
	if p := o.Plan; p != nil {
		out.Plan, out.Why = p.Number, p.Why
		out.Planned = time.Now().Add(-time.Duration((o.NowS - p.AtS) * float64(time.Second)))
	}
	held, broken := holdings(machines, out.Machines), s.BrokenVariants()
	for k := range o.Apps {
		a := &o.Apps[k]
		if a.Closed {
			continue
		}
		w, h := past[a.Name], held[a.Name]
		x := App{Rate: rates[a.Name], Violations: w.Violation, Accuracy: w.Accuracy, Ready: ready[a.Name],
			Percentile: a.Percentile,
			Latency:    time.Duration(a.ObjectiveMS * float64(time.Millisecond))}
		for _, v := range broken[a.Name] { // the name of a model is that of its variant
			x.Broken = append(x.Broken, Broken{v, cmp.Or(unfetched[v], s.LoadError(v))})
		}
		if h != nil {
			x.Dollars, x.Machines, x.Instances = h.dollars, len(h.workers), h.least(a.Stages)
		}
		if f := a.Forecast; f != nil {
			if f.Demand != nil {
				x.Demand = *f.Demand
			}
			if f.Shed != nil {
				x.Shed = *f.Shed
			}
			x.Planned = f.Capacity == nil || *f.Capacity > 0
		}
		out.Apps[a.Name] = x
	}
	return out
}

// holding is what an app has of the machines.
type holding struct {
	dollars float64
	workers map[int]bool
	ready   map[string]int // instances by stage
}

// least is the number of ready instances of the stage that has fewest.
func (h *holding) least(stages int) int {
	if len(h.ready) < stages {
		return 0
	}
	out := -1
	for _, n := range h.ready {
		if out < 0 || n < out {
			out = n
		}
	}
	return max(out, 0)
}

// holdings returns what every app has of the machines, and counts the ready machines by type. A machine's price is
// divided among the instances on it.
func holdings(m *board.Machines, types map[string]int) map[string]*holding {
	out := make(map[string]*holding)
	for k := range m.States {
		w := &m.States[k]
		kind := &m.Kinds[m.Workers[w.Worker].Kind]
		up := func(i board.InstanceNow) bool { return i.State == "ready" || i.State == "kept" }
		if slices.ContainsFunc(w.Instances, up) {
			types[kind.Name]++
		}
		for _, i := range w.Instances {
			stage := m.Stages[i.Stage]
			h := out[stage.App]
			if h == nil {
				h = &holding{workers: make(map[int]bool), ready: make(map[string]int)}
				out[stage.App] = h
			}
			h.workers[w.Worker] = true
			h.dollars += kind.Price / float64(len(w.Instances))
			if up(i) {
				h.ready[stage.Stage]++
			}
		}
	}
	return out
}
