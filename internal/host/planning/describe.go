package planning

import (
	"math"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/measure/quantity"
	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// rounding is the part of a demand that may be missing by floating point alone.
const rounding = 1e-6

// simulated is the part of an accuracy that may be missing because it was simulated with some thousand queries.
const simulated = 0.005

// rounding is the part of an accuracy that counts as rounding.
func (d *description) rounding() float64 {
	if d.pooled && d.made.Forecast.Queries > 0 {
		return simulated
	}
	return rounding
}

// description is a Plan while it is computed.
type description struct {
	spec    *serving.Spec
	made    *plan.Plan
	demands []capacity.StageDemand // by StageID, for a query of each app
	stages  []carried              // by StageID
	hosts   []float64              // capacity of each of the plan's instances, in items/s
	pooled  bool                   // one rule decides for all machines, so that shares do not bind
	out     Plan
}

// describeBy is Describe for a plan of a planner. Plans of fluid say themselves what they carry: a rule for all
// machines follows, and shares do not bind it.
func describeBy(planner plan.Planner, p *host.Profiled, d *Demand, made *plan.Plan) Plan {
	x := &description{}
	x.pooled = fluidOf(planner) != nil
	return x.describe(p.Spec(), p.Latencies(), d.Rates, made)
}

// Describe describes a plan for a demand, in queries/s by AppID, of each app. It computes what an app gets from shares
// and latencies, not from the planner's forecast: some planners forecast fewer values than others, and a plan for
// throughput counts demand as shed that its instances would serve. System, Planner, WhatIf and Scale are left empty.
func Describe(spec *serving.Spec, latencies profile.Profile, demand []float64, made *plan.Plan) Plan {
	return (&description{}).describe(spec, latencies, demand, made)
}

func (d *description) describe(spec *serving.Spec, latencies profile.Profile, demand []float64, made *plan.Plan) Plan {
	d.spec, d.made, d.demands = spec, made, capacity.StageDemands(spec, nil)
	d.stages, d.hosts = capacities(spec, latencies, made, d.demands)
	d.out = Plan{
		Demand: (&Demand{Rates: demand}).Total(), Workers: len(spec.Workers), Loads: made.Loads,
		CostPerHour: made.Forecast.CostPerHour,
	}
	if made.Proven {
		d.out.Bound, d.out.Gap = &made.Bound, &made.Gap
	}
	for _, s := range made.Sharing {
		d.out.Sharing = append(d.out.Sharing, spec.Stages[s].Name)
	}
	if made.BoundsCost {
		d.out.Goal = GoalCost
	}
	if y := made.Forecast.Second; y != nil {
		d.out.SecondSaved = y.Saved
	}
	for id, n := range made.Shortage {
		if n > 0 {
			if d.out.Short == nil {
				d.out.Short = make(map[string]int)
			}
			d.out.Short[spec.DeviceTypes[id].Name] = n
		}
	}
	for s := range d.stages {
		if promised := made.Promised(spec, serving.StageID(s)); promised != nil {
			x, _ := promised.At(demand[spec.Stages[s].App])
			d.stages[s].accuracy = x.Accuracy
		}
	}
	d.out.OutOfBounds = outOfBounds(spec, made)
	d.apps(demand)
	d.forecast()
	d.instances()
	d.graphs()
	return d.out
}

// outOfBounds lists the stages whose number of instances is not what their app asks for.
func outOfBounds(spec *serving.Spec, made *plan.Plan) (out []OutOfBounds) {
	for _, x := range made.OutOfBounds(spec) {
		st := &spec.Stages[x.Stage]
		out = append(out, OutOfBounds{
			App: spec.Apps[st.App].Name, Stage: st.Name, Instances: x.Instances, Setting: x.Setting(), Bound: x.Bound,
		})
	}
	return out
}

// forecast says what was simulated. It must be called after apps.
func (d *description) forecast() {
	f := &d.made.Forecast
	d.out.Choice = d.made.Choice
	if f.Queries == 0 {
		return
	}
	d.out.Forecast = &Forecast{
		Violation: f.Violation, Deviation: f.Deviation, Accuracy: f.Accuracy, Queries: f.Queries,
	}
	for a := range d.out.Apps {
		if a < len(f.Late) {
			d.out.Apps[a].Violation = &f.Late[a]
		}
	}
	for _, t := range d.made.Trials {
		x := Trial{
			Candidate: t.Candidate, Machines: make(map[string]int), CostPerHour: t.CostPerHour, Loads: t.Loads,
			Sheds: t.Sheds, Adopted: t.Adopted, Violation: t.Violation, Deviation: t.Deviation, Accuracy: t.Accuracy,
			Utility: t.Utility,
		}
		for device, n := range t.Machines {
			if n > 0 {
				x.Machines[d.spec.DeviceTypes[device].Name] = n
			}
		}
		d.out.Trials = append(d.out.Trials, x)
	}
}

// refused sets the description for a demand without a plan.
func (v *Plan) refused(spec *serving.Spec, d *Demand, err error) {
	v.Error, v.Demand, v.Shed, v.Workers = err.Error(), d.Total(), d.Total(), len(spec.Workers)
	for a, app := range spec.Apps {
		v.Apps = append(v.Apps, App{
			Name: app.Name, SLOMS: quantity.Milliseconds(app.SLO.Latency), Demand: d.Rates[a], Shed: d.Rates[a],
		})
	}
}

// apps describes each app, and all together.
func (d *description) apps(demand []float64) {
	v := &d.out
	right := 0.0
	for a, app := range d.spec.Apps {
		x := App{
			Name: app.Name, SLOMS: quantity.Milliseconds(app.SLO.Latency), Demand: demand[a], Capacity: math.Inf(1),
		}
		accuracy := 1.0
		for _, s := range app.Stages {
			if d.demands[s].FanOut > 0 {
				x.Capacity = min(x.Capacity, d.stages[s].capacity/d.demands[s].FanOut)
				accuracy *= d.stages[s].accuracy
			}
		}
		switch {
		case d.pooled && a < len(d.made.Capacity):
			x.Capacity = d.made.Capacity[a]
		case d.made.BoundsCost && a < len(d.made.Capacity):
			x.Capacity = min(x.Capacity, d.made.Capacity[a]) // an instance that shares a worker carries less than alone
		}
		if f := &d.made.Forecast; d.pooled && a < len(f.Accurate) && f.Accurate[a] > 0 {
			accuracy = f.Accurate[a]
		}
		if x.Capacity > 0 {
			x.Accuracy = &accuracy
		}
		if y := d.made.Forecast.Second; y != nil && len(d.spec.Stages[app.Stages[0]].Confidences) > 0 {
			x.Second, x.SecondGain = &y.Shares[a], &y.Gains[a]
		}
		if target := app.AccuracyTarget; target > 0 {
			missed := 0.0
			if x.Capacity > 0 && accuracy < target*(1-d.rounding()) {
				missed = target - accuracy
			}
			x.Target, x.Missed = &target, &missed
		}
		v.Apps = append(v.Apps, x)
	}
	if !d.pooled {
		d.limitShared(demand)
	}
	for a := range v.Apps {
		x := &v.Apps[a]
		x.Served = min(x.Demand, x.Capacity)
		if x.Shed = x.Demand - x.Served; x.Shed <= rounding*x.Demand {
			x.Served, x.Shed = x.Demand, 0
		}
		v.Served += x.Served
		v.Shed += x.Shed
		v.Capacity += x.Capacity
		if x.Accuracy != nil {
			right += x.Served * *x.Accuracy
		}
	}
	switch {
	case v.Served > 0:
		right /= v.Served
		v.Accuracy = &right
	case v.Demand == 0 && d.made.Forecast.Accuracy > 0:
		v.Accuracy = &d.made.Forecast.Accuracy
	}
}

// instances describes the instances, and lists the idle workers. It must be called after apps.
func (d *description) instances() {
	spec, v := d.spec, &d.out
	busy := make([]bool, len(spec.Workers))
	for n, i := range d.made.Instances {
		busy[i.Worker] = true
		device, active, stage := i.DeviceType(spec), i.Variants[0], &spec.Stages[i.Stage]
		x := Instance{
			Worker: spec.Workers[i.Worker].Name, DeviceType: spec.DeviceTypes[device].Name,
			App: spec.Apps[stage.App].Name, Stage: stage.Name,
			Variant: spec.Variants[active.Variant].Name, Accuracy: spec.Variants[active.Variant].Accuracy,
			BatchLimit: active.Limit, Slots: i.Slots, Share: i.Share, Capacity: d.hosts[n],
			Rate: i.Share * v.Apps[stage.App].Served * d.demands[i.Stage].FanOut,
		}
		if x.Capacity > 0 {
			x.Part = x.Rate / x.Capacity
		}
		for _, l := range i.Variants[1:] {
			x.Standby = append(x.Standby, spec.Variants[l.Variant].Name)
		}
		v.Instances = append(v.Instances, x)
	}
	for w, b := range busy {
		if !b {
			v.Idle = append(v.Idle, spec.Workers[w].Name)
		}
	}
}

// graphs describes the stages of apps of several stages, and the used part of machines. It must be called after
// instances.
func (d *description) graphs() {
	spec, v := d.spec, &d.out
	at := make([]int, len(spec.Stages))
	for s := range at {
		at[s] = -1
	}
	for a, app := range spec.Apps {
		if len(app.Stages) == 1 {
			continue
		}
		for _, s := range app.Stages {
			x := Stage{App: app.Name, Stage: spec.Stages[s].Name, Rate: v.Apps[a].Served * d.demands[s].FanOut}
			if d.made.Budgets != nil {
				x.BudgetMS = quantity.Milliseconds(d.made.Budgets[s])
			}
			at[s] = len(v.Stages)
			v.Stages = append(v.Stages, x)
		}
	}
	if v.Stages == nil {
		return
	}
	used := 0.0
	for n, i := range d.made.Instances {
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

// carried is the capacity of a stage in a plan.
type carried struct {
	capacity float64 // items/s while every instance gets its share
	accuracy float64 // mean over items
}

// capacities returns the capacities of a plan's stages and instances, in items/s, or in queries/s times the items per
// item of a query if the plan was made for sizes of queries.
func capacities(spec *serving.Spec, latencies profile.Profile, p *plan.Plan, demands []capacity.StageDemand) (
	stages []carried, hosts []float64) {
	stages, hosts = make([]carried, len(spec.Stages)), make([]float64, len(p.Instances))
	for s := range stages {
		stages[s].capacity = math.Inf(1)
	}
	for n, i := range p.Instances {
		active := i.Variants[0]
		if a := spec.Stages[i.Stage].App; p.Mixes != nil {
			// Queries of many sizes run one at a time, so the capacity with full batches does not apply. The planner's
			// is used.
			hosts[n] = p.Capacity[a] * i.Share * demands[i.Stage].FanOut
		} else {
			run := latencies.Latency(active.Variant, i.DeviceType(spec), active.Limit, i.Slots)
			hosts[n] = float64(i.Slots*active.Limit) / run.Seconds()
		}
		if s := &stages[i.Stage]; i.Share > 0 {
			s.capacity = min(s.capacity, hosts[n]/i.Share)
			s.accuracy += i.Share * spec.Variants[active.Variant].Accuracy
		}
	}
	for s := range stages {
		if math.IsInf(stages[s].capacity, 1) {
			stages[s].capacity = 0
		}
	}
	return stages, hosts
}
