package nexus

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// session is a stage with its part of the objective.
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

// best is the variant of a stage that a machine carries most of within a part of the objective, and how much that is.
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

// pack splits every app and packs what is left of all of them, for a part of the demand.
func (x *request) pack(part float64) ([]Node, error) {
	var sessions []Session
	var stages []serving.StageID
	for a := range x.spec.Apps {
		app := &x.spec.Apps[a]
		if err := x.split(app, part); err != nil {
			return nil, err
		}
		for _, s := range app.Stages {
			if m := &x.choices[s]; !m.frontend {
				sessions = append(sessions, x.session(s, m.variant, max(x.asked[s].Rate*part, capacity.MinRate),
					m.budget))
				stages = append(stages, s)
			}
		}
	}
	nodes, failed, ok := Pack(sessions, x.spec.DeviceTypes[x.believedType].MemoryBytes)
	if !ok {
		s := stages[failed]
		return nil, capacity.Unservable(x.believed, x.spec, s, x.asked[s], []serving.DeviceTypeID{x.believedType}, x.broken)
	}
	for n := range nodes {
		for k := range nodes[n].Sessions {
			p := &nodes[n].Sessions[k]
			p.Session = int(stages[p.Session])
		}
	}
	return nodes, nil
}

// split finds each stage's part of an app's objective.
func (x *request) split(app *serving.App, part float64) error {
	within := app.SLO.Latency - app.Slack
	at := make(map[serving.StageID]int, len(app.Stages))
	stages := make([]Stage, len(app.Stages))
	for k, s := range app.Stages {
		at[s] = k
		stages[k].Rate = max(x.asked[s].Rate*part, capacity.MinRate)
		if m := &x.choices[s]; m.frontend {
			stages[k].Fixed = m.budget
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
		if m := &x.choices[s]; m.frontend {
			m.budget = max(m.budget, parts[k])
		} else {
			m.budget = parts[k]
			m.variant, _ = x.fastest(s, parts[k])
		}
	}
	return nil
}

// plan writes down nodes, whose sessions are stages, for a part of the demand.
func (x *request) plan(r plan.Request, nodes []Node, part float64, short int) *plan.Plan {
	out := &plan.Plan{
		Planner: "nexus", Forecast: plan.Forecast{Violation: -1}, Budgets: make([]time.Duration, len(x.spec.Stages)),
	}
	if r.Snapshot != nil {
		out.Snapshot = r.Snapshot.Seq
	}
	carried := make([]float64, len(x.spec.Stages))
	var households []capacity.Bundle
	for _, n := range nodes {
		h := capacity.Bundle{}
		for _, p := range n.Sessions {
			s := serving.StageID(p.Session)
			carried[s] += p.Rate
			h.Instances = append(h.Instances, capacity.Instance{Stage: s, Variant: x.choices[s].variant, Slots: 1})
		}
		households = append(households, h)
	}
	for range x.frontends {
		h := capacity.Bundle{Group: 1}
		for s := range x.choices {
			if m := &x.choices[s]; m.frontend {
				h.Instances = append(h.Instances, capacity.Instance{
					Stage: serving.StageID(s), Variant: m.variant, Slots: m.slots,
				})
			}
		}
		households = append(households, h)
	}
	homes, _ := capacity.AssignWorkers(x.running, [][]serving.WorkerID{x.backends, x.frontends}, households)
	reach := make([]float64, len(x.rates))
	for a := range reach {
		reach[a] = math.Inf(1)
	}
	sessions := make([]Session, len(x.choices))
	for s := range x.choices {
		out.Budgets[s] = x.choices[s].budget
		if m := &x.choices[s]; !m.frontend {
			sessions[s] = x.session(serving.StageID(s), m.variant, 0, m.budget)
		}
	}
	for h, home := range homes {
		for k, l := range households[h].Instances {
			i := plan.Instance{
				Worker: home.Worker, Place: home.Places[k], Stage: l.Stage, Slots: l.Slots,
				Variants: []plan.Variant{{Variant: l.Variant, Limit: 1}},
			}
			if h < len(nodes) {
				p := nodes[h].Sessions[k]
				i.Variants[0].Limit, i.Share, i.Hold = p.Batch, p.Rate/carried[l.Stage], nodes[h].Duty
				a := x.spec.Stages[l.Stage].App
				reach[a] = min(reach[a], 1/nodes[h].Occupancy(sessions))
			} else {
				i.Share = 1 / float64(len(x.frontends))
			}
			if !home.Continues[k] {
				out.Loads++
			}
			out.Instances = append(out.Instances, i)
		}
	}
	out.Forecast.CostPerHour = r.CostPerHour(out.Instances)
	out.Sort()
	x.fillForecast(out, reach, part, short)
	return out
}

// promise fills in what the plan is made for, carries and leaves out. Front-ends do not count: nobody plans them.
func (x *request) fillForecast(out *plan.Plan, reach []float64, part float64, short int) {
	out.Demand, out.Capacity = x.rates, make([]float64, len(x.rates))
	var accuracy, queries float64
	for a, app := range x.spec.Apps {
		if math.IsInf(reach[a], 1) {
			reach[a] = 1 // an app of front-ends
		}
		out.Capacity[a] = x.rates[a] * part * reach[a]
		out.Forecast.Throughput += out.Capacity[a]
		all := 1.0
		for _, s := range app.Stages {
			all *= x.spec.Variants[x.choices[s].variant].Accuracy
		}
		accuracy += x.rates[a] * part * all
		queries += x.rates[a] * part
	}
	out.Forecast.Accuracy = accuracy / queries
	if short > 0 {
		out.Shed, out.Shortage = make([]float64, len(x.rates)), make([]int, len(x.spec.DeviceTypes))
		out.Shortage[x.believedType] = short
		for a := range x.rates {
			out.Shed[a] = x.rates[a] * (1 - part)
		}
	}
}
