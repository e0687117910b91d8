package cli

import (
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// planReport is what 'sluice plan' answers, and its JSON. Rates are in queries/s where nothing else is said, accuracies
// and shares fractions in [0, 1].
type planReport struct {
	File      string         `json:"file"`
	Plans     []planView     `json:"plans,omitempty"`
	Frontiers []frontierView `json:"frontiers,omitempty"`
}

// planView is one plan as people and programs read it.
type planView struct {
	System  string  `json:"system"`
	Planner string  `json:"planner"`
	WhatIf  string  `json:"what_if,omitempty"` // the change of the fleet; empty for the fleet as it is
	Scale   float64 `json:"scale,omitempty"`   // of the demand asked for, where it is scaled
	// Error is why there is no plan at all: some app cannot be served by anything.
	Error  string  `json:"error,omitempty"`
	Demand float64 `json:"demand"`
	Served float64 `json:"served"`
	Shed   float64 `json:"shed"` // of the demand, not served
	// Capacity is what the plan's instances carry at its shares, Reach what the fleet could carry of this mix of apps,
	// whatever the accuracy, with a plan made for that.
	Capacity    float64  `json:"capacity"`
	Reach       *float64 `json:"reach,omitempty"`
	Accuracy    *float64 `json:"accuracy,omitempty"` // mean over what is served
	CostPerHour float64  `json:"cost_per_hour"`      // $/h of the workers used
	// CostUsed counts each worker by the part of it that is used for what is served, in $/h; of plans for apps of
	// several stages.
	CostUsed *float64 `json:"cost_used_per_hour,omitempty"`
	Workers  int      `json:"workers"`
	Idle     []string `json:"idle,omitempty"` // workers without an instance
	Loads    int      `json:"loads"`          // variants to bring up
	// Goal is what the planner maximises and what Bound is in; no plan is better than Bound, which is Gap from this
	// one, relatively. Both are absent where nothing is proven.
	Goal   string     `json:"goal,omitempty"`
	Bound  *float64   `json:"bound,omitempty"`
	Gap    *float64   `json:"gap,omitempty"`
	Apps   []appView  `json:"apps"`
	Stages []stageRow `json:"stages,omitempty"` // of apps of several stages
	// Short is, by device type, how many workers more it would take to serve all that is asked for.
	Short     map[string]int `json:"short,omitempty"`
	Instances []instanceView `json:"instances,omitempty"`
	// Adviser is the planner that was asked for the diagnosis where the plan's own has no answers.
	Adviser   string         `json:"adviser,omitempty"`
	Diagnosis *diagnosisView `json:"diagnosis,omitempty"`
}

type appView struct {
	Name     string   `json:"name"`
	SLOMS    float64  `json:"slo_ms"`
	Demand   float64  `json:"demand"`
	Served   float64  `json:"served"`
	Shed     float64  `json:"shed"`
	Capacity float64  `json:"capacity"`
	Accuracy *float64 `json:"accuracy,omitempty"`
}

// stageRow is what a plan gives a stage of a graph.
type stageRow struct {
	App         string  `json:"app"`
	Stage       string  `json:"stage"`
	BudgetMS    float64 `json:"budget_ms,omitempty"` // its part of the objective; 0 where the plan has none
	Rate        float64 `json:"rate"`                // items/s
	Machines    float64 `json:"machines"`            // each counted by the part that is used
	CostPerHour float64 `json:"cost_used_per_hour"`  // the same in $/h
}

type instanceView struct {
	Worker     string   `json:"worker"`
	DeviceType string   `json:"device_type"`
	App        string   `json:"app"`
	Stage      string   `json:"stage"`
	Variant    string   `json:"variant"`           // the active one
	Standby    []string `json:"standby,omitempty"` // loaded besides
	Accuracy   float64  `json:"accuracy"`          // of the active one
	BatchLimit int      `json:"batch_limit"`       // items
	Slots      int      `json:"slots"`             // batches at once
	Share      float64  `json:"share"`             // of the stage's traffic
	Rate       float64  `json:"rate"`              // forecast, items/s
	Capacity   float64  `json:"capacity"`          // items/s in batches of the limit, on a worker of its own
	Part       float64  `json:"part"`              // of its worker that its rate takes
}

// lacks tells that some of the demand is not served.
func (v *planView) lacks() bool { return v.Error != "" || v.Shed > 0 }

// verdict says so in a line.
func (v *planView) verdict() string {
	if v.Error != "" {
		return "the demand cannot be carried: there are apps that nothing serves"
	}
	return fmt.Sprintf("the demand cannot be carried: %s of %s", rateText(v.Served), rateText(v.Demand))
}

// nothing notes that there is no plan.
func (v *planView) nothing(w *world, st *step, err error) {
	v.Error, v.Shed = err.Error(), v.Demand
	for a, app := range w.Spec.Apps {
		v.Apps = append(v.Apps, appView{
			Name: app.Name, SLOMS: millis(app.SLO.Latency), Demand: st.rates[a], Shed: st.rates[a],
		})
	}
}

// read takes down a plan. What each app gets follows from shares and capacities, for every planner alike: some forecast
// less than others, and a plan for throughput counts an app as shed that its instances would serve.
func (v *planView) read(w *world, st *step, p *plan.Plan) {
	spec := w.Spec
	v.Loads, v.CostPerHour = p.Loads, p.Forecast.CostPerHour
	if p.Proven {
		v.Bound, v.Gap = &p.Bound, &p.Gap
	}
	if p.BoundsCost {
		v.Goal = goalCost
	}
	for d, n := range p.Shortage {
		if n > 0 {
			if v.Short == nil {
				v.Short = make(map[string]int)
			}
			v.Short[spec.DeviceTypes[d].Name] = n
		}
	}
	stages, hosts := w.capacities(p)
	for n := range stages {
		if promised := p.Promised(spec, serving.StageID(n)); promised != nil {
			x, _ := promised.At(st.rates[spec.Stages[n].App])
			stages[n].accuracy = x.Accuracy
		}
	}
	asked := capacity.StageDemands(spec, nil)
	right := 0.0
	for a, app := range spec.Apps {
		x := appView{Name: app.Name, SLOMS: millis(app.SLO.Latency), Demand: st.rates[a], Capacity: math.Inf(1)}
		accuracy := 1.0
		for _, s := range app.Stages {
			if asked[s].FanOut > 0 {
				x.Capacity = min(x.Capacity, stages[s].capacity/asked[s].FanOut)
				accuracy *= stages[s].accuracy
			}
		}
		if p.BoundsCost && a < len(p.Capacity) {
			x.Capacity = min(x.Capacity, p.Capacity[a]) // what shares a worker has less than the whole of it
		}
		x.Served = min(x.Demand, x.Capacity)
		if x.Shed = x.Demand - x.Served; x.Shed <= rounding*x.Demand {
			x.Served, x.Shed = x.Demand, 0
		}
		if x.Capacity > 0 {
			x.Accuracy = &accuracy
		}
		v.Served += x.Served
		v.Shed += x.Shed
		v.Capacity += x.Capacity
		right += x.Served * accuracy
		v.Apps = append(v.Apps, x)
	}
	switch {
	case v.Served > 0:
		right /= v.Served
		v.Accuracy = &right
	case v.Demand == 0 && p.Forecast.Accuracy > 0:
		v.Accuracy = &p.Forecast.Accuracy
	}
	busy := make([]bool, len(spec.Workers))
	for n, i := range p.Instances {
		busy[i.Worker] = true
		d, active, stage := i.DeviceType(spec), i.Variants[0], &spec.Stages[i.Stage]
		x := instanceView{
			Worker: spec.Workers[i.Worker].Name, DeviceType: spec.DeviceTypes[d].Name, App: spec.Apps[stage.App].Name,
			Stage:   stage.Name,
			Variant: spec.Variants[active.Variant].Name, Accuracy: spec.Variants[active.Variant].Accuracy,
			BatchLimit: active.Limit, Slots: i.Slots, Share: i.Share, Capacity: hosts[n],
			Rate: i.Share * v.Apps[stage.App].Served * asked[i.Stage].FanOut,
		}
		if x.Capacity > 0 {
			x.Part = x.Rate / x.Capacity
		}
		for _, l := range i.Variants[1:] {
			x.Standby = append(x.Standby, spec.Variants[l.Variant].Name)
		}
		v.Instances = append(v.Instances, x)
	}
	for i, b := range busy {
		if !b {
			v.Idle = append(v.Idle, spec.Workers[i].Name)
		}
	}
	v.stages(w, p)
}

// goalCost is the goal of plans that cost as little as they can.
const goalCost = "cost"

// stages says what the stages of graphs get, and what is used of machines, after instances have been read.
func (v *planView) stages(w *world, p *plan.Plan) {
	spec := w.Spec
	at := make([]int, len(spec.Stages))
	for s := range spec.Stages {
		at[s] = -1
	}
	asked := capacity.StageDemands(spec, nil)
	for a, app := range spec.Apps {
		for _, s := range app.Stages {
			if len(app.Stages) == 1 {
				continue
			}
			x := stageRow{App: app.Name, Stage: spec.Stages[s].Name, Rate: v.Apps[a].Served * asked[s].FanOut}
			if p.Budgets != nil {
				x.BudgetMS = millis(p.Budgets[s])
			}
			at[s] = len(v.Stages)
			v.Stages = append(v.Stages, x)
		}
	}
	if v.Stages == nil {
		return
	}
	used := 0.0
	for n, i := range p.Instances {
		part := v.Instances[n].Part
		price := part * spec.DeviceTypes[i.DeviceType(spec)].PricePerHour
		used += price
		if k := at[i.Stage]; k >= 0 {
			v.Stages[k].Machines += part
			v.Stages[k].CostPerHour += price
		}
	}
	v.CostUsed = &used
}

// rounding is the part of a demand that may be missing by floating point alone.
const rounding = 1e-6

// stageView is what a plan gives a stage.
type stageView struct {
	capacity float64 // items/s while every instance gets its share
	accuracy float64 // mean over items
}

// capacities says what a plan's stages and instances carry, in items/s; in queries/s where the plan was made for sizes
// of queries.
func (w *world) capacities(p *plan.Plan) (stages []stageView, hosts []float64) {
	stages, hosts = make([]stageView, len(w.Spec.Stages)), make([]float64, len(p.Instances))
	for s := range stages {
		stages[s].capacity = math.Inf(1)
	}
	for n, i := range p.Instances {
		active := i.Variants[0]
		if a := w.Spec.Stages[i.Stage].App; p.Mixes != nil {
			// Queries of many sizes, one at a time: what the planner says, since full batches say nothing of them.
			hosts[n] = p.Capacity[a] * i.Share
		} else {
			run := w.profile.Latency(active.Variant, i.DeviceType(w.Spec), active.Limit, i.Slots)
			hosts[n] = float64(i.Slots*active.Limit) / run.Seconds()
		}
		if s := &stages[i.Stage]; i.Share > 0 {
			s.capacity = min(s.capacity, hosts[n]/i.Share)
			s.accuracy += i.Share * w.Spec.Variants[active.Variant].Accuracy
		}
	}
	for s := range stages {
		if math.IsInf(stages[s].capacity, 1) {
			stages[s].capacity = 0
		}
	}
	return stages, hosts
}
