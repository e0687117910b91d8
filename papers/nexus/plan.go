package nexus

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// session returns the session of a stage that runs a variant, at a rate in items/s within a budget. Its batches fit the
// memory of the believed type.
func (x *request) session(s serving.StageID, v serving.VariantID, rate float64, within time.Duration) Session {
	variant := &x.spec.Variants[v]
	out := Session{
		Rate: rate, Budget: within, MaxBatch: variant.MaxBatch,
		Latency: func(b int) time.Duration { return x.believed.Latency(v, x.believedType, b, 1) },
		Memory:  func(b int) int64 { return variant.MemoryBytes + int64(b)*variant.ItemBytes },
	}
	if has := x.spec.DeviceTypes[x.believedType].MemoryBytes; has > 0 {
		for out.MaxBatch > 0 && out.Memory(out.MaxBatch) > has {
			out.MaxBatch--
		}
	}
	return out
}

// fastest returns the variant of a stage of which a machine carries most within a budget, and that rate in items/s;
// serving.None when none is in time.
func (x *request) fastest(s serving.StageID, within time.Duration) (best serving.VariantID, most float64) {
	best = serving.None
	for _, v := range x.variants(s) {
		one := x.session(s, v, 0, within)
		if b := one.saturatingBatch(); b > 0 {
			if able := float64(b) / one.Latency(b).Seconds(); able > most {
				best, most = v, able
			}
		}
	}
	return best, most
}

// pack splits every app and packs the sessions of all apps, for a part of the demand. The sessions of the nodes are
// StageIDs.
func (x *request) pack(part float64) ([]Node, error) {
	var sessions []Session
	var stages []serving.StageID
	for a := range x.spec.Apps {
		app := &x.spec.Apps[a]
		if err := x.split(app, part); err != nil {
			return nil, err
		}
		for _, s := range app.Stages {
			if c := &x.choices[s]; !c.frontend {
				sessions = append(sessions, x.session(s, c.variant, max(x.asked[s].Rate*part, capacity.MinRate),
					c.budget))
				stages = append(stages, s)
			}
		}
	}
	nodes, failed, ok := Pack(sessions, x.spec.DeviceTypes[x.believedType].MemoryBytes)
	if !ok {
		s := stages[failed]
		return nil, capacity.Unservable(x.believed, x.spec, s, x.asked[s], []serving.DeviceTypeID{x.believedType},
			x.broken)
	}
	for n := range nodes {
		for k := range nodes[n].Sessions {
			p := &nodes[n].Sessions[k]
			p.Session = int(stages[p.Session])
		}
	}
	return nodes, nil
}

// split finds the budget of each stage of an app, for a part of the demand.
func (x *request) split(app *serving.App, part float64) error {
	within := app.SLO.Latency - app.Slack
	at := make(map[serving.StageID]int, len(app.Stages))
	stages := make([]Stage, len(app.Stages))
	for k, s := range app.Stages {
		at[s] = k
		stages[k].Rate = max(x.asked[s].Rate*part, capacity.MinRate)
		if c := &x.choices[s]; c.frontend {
			stages[k].Fixed = c.budget
		} else {
			stages[k].Throughput = func(within time.Duration) float64 {
				_, able := x.fastest(s, within)
				return able
			}
		}
	}
	for k, s := range app.Stages {
		for _, e := range x.spec.Stages[s].Next {
			to := &stages[at[e.To]]
			if !slices.Contains(to.After, k) {
				to.After = append(to.After, k)
			}
		}
	}
	parts := Split(stages, within)
	if parts == nil {
		return fmt.Errorf(
			"app %q: its stages cannot be served within %v from end to end on %q: a batch may take half of a stage's "+
				"part of it. Raise slo.latency, or use faster variants",
			app.Name, within, x.spec.DeviceTypes[x.believedType].Name)
	}
	for k, s := range app.Stages {
		if c := &x.choices[s]; c.frontend {
			c.budget = max(c.budget, parts[k])
		} else {
			c.budget = parts[k]
			c.variant, _ = x.fastest(s, parts[k])
		}
	}
	return nil
}

// plan makes the plan from nodes whose sessions are stages. part is the part of the demand that they carry. short is
// the number of machines that are missing to carry all of it.
func (x *request) plan(r plan.Request, nodes []Node, part float64, short int) *plan.Plan {
	out := r.NewPlan("nexus")
	out.Budgets = make([]time.Duration, len(x.spec.Stages))
	sessions := make([]Session, len(x.choices))
	for s := range x.choices {
		out.Budgets[s] = x.choices[s].budget
		if c := &x.choices[s]; !c.frontend {
			sessions[s] = x.session(serving.StageID(s), c.variant, 0, c.budget)
		}
	}
	growth := make([]float64, len(x.rates))
	for a := range growth {
		growth[a] = math.Inf(1)
	}
	bundles, carried := x.bundles(nodes)
	workers, _ := capacity.AssignWorkers(x.running, [][]serving.WorkerID{x.backends, x.frontends}, bundles)
	for b, at := range workers {
		for k, want := range bundles[b].Instances {
			i := plan.Instance{
				Worker: at.Worker, Place: at.Places[k], Stage: want.Stage, Slots: want.Slots,
				Variants: []plan.Variant{{Variant: want.Variant, Limit: 1}},
			}
			if b < len(nodes) {
				p := nodes[b].Sessions[k]
				i.Variants[0].Limit, i.Share, i.BatchTimeout = p.Batch, p.Rate/carried[want.Stage], nodes[b].Duty
				a := x.spec.Stages[want.Stage].App
				growth[a] = min(growth[a], 1/nodes[b].Occupancy(sessions))
			} else {
				i.Share = 1 / float64(len(x.frontends))
			}
			if !at.Continues[k] {
				out.Loads++
			}
			out.Instances = append(out.Instances, i)
		}
	}
	out.Forecast.CostPerHour = r.CostPerHour(out.Instances)
	out.Sort()
	x.fillForecast(out, growth, part, short)
	return out
}

// bundles returns the instances of every node, then those of every front-end, and by StageID the rate in items/s that
// the nodes carry.
func (x *request) bundles(nodes []Node) (out []capacity.Bundle, carried []float64) {
	carried = make([]float64, len(x.spec.Stages))
	for _, n := range nodes {
		b := capacity.Bundle{}
		for _, p := range n.Sessions {
			s := serving.StageID(p.Session)
			carried[s] += p.Rate
			b.Instances = append(b.Instances, capacity.Instance{Stage: s, Variant: x.choices[s].variant, Slots: 1})
		}
		out = append(out, b)
	}
	for range x.frontends {
		b := capacity.Bundle{Group: 1}
		for s := range x.choices {
			if c := &x.choices[s]; c.frontend {
				b.Instances = append(b.Instances, capacity.Instance{
					Stage: serving.StageID(s), Variant: c.variant, Slots: c.slots,
				})
			}
		}
		out = append(out, b)
	}
	return out, carried
}

// fillForecast fills in the demand, the capacity and the shed rates. growth is by AppID the factor by which the load
// may grow before a node is full. Front-ends do not count, since they are not planned.
func (x *request) fillForecast(out *plan.Plan, growth []float64, part float64, short int) {
	apps := make([]capacity.Outlook, len(x.rates))
	for a, app := range x.spec.Apps {
		y := &apps[a]
		if math.IsInf(growth[a], 1) {
			growth[a] = 1 // an app that only front-ends serve
		}
		*y = capacity.Outlook{
			Demand: x.rates[a], Capacity: x.rates[a] * part * growth[a], Served: x.rates[a] * part, Accuracy: 1,
		}
		for _, s := range app.Stages {
			y.Accuracy *= x.spec.Variants[x.choices[s].variant].Accuracy
		}
		if short > 0 {
			y.Missing = x.rates[a] * (1 - part)
		}
	}
	capacity.Foresee(out, apps)
	if short > 0 {
		out.Shortage = make([]int, len(x.spec.DeviceTypes))
		out.Shortage[x.believedType] = short
	}
}
