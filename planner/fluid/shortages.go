package fluid

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/planner/capacity"
	"github.com/sluice-serving/sluice/serving"
)

// findUnserved finds the stages that nothing serves, with the floors and objectives at which they could be served.
func (d *diagnoser) findUnserved(m *problem) {
	for s := range m.stages {
		id, a := serving.StageID(s), m.stages[s].app
		if m.apps[a].closed || m.stages[s].fan <= 0 || m.serves(id) {
			continue
		}
		u := capacity.UnservedStage{App: a, Stage: id, Variant: serving.None, Device: serving.None}
		free := d.problem(d.altered(func(apps []serving.App) { apps[a].Floor = 0 }))
		for _, v := range d.r.Spec.Stages[s].Variants {
			if free.servesWith(id, v) != serving.None {
				u.Floor = max(u.Floor, d.r.Spec.Variants[v].Accuracy)
			}
		}
		u.SLO = d.objective(id)
		if u.SLO > 0 {
			longer := d.problem(d.longer([]serving.AppID{a}, u.SLO, 1))
			for _, v := range d.r.Spec.Stages[s].Variants {
				if device := longer.servesWith(id, v); device != serving.None && u.Variant == serving.None {
					u.Variant, u.Device = v, device
				}
			}
		}
		d.out.Unserved = append(d.out.Unserved, u)
	}
}

// servesWith returns a device type on which a variant serves a stage; serving.None where none does.
func (m *problem) servesWith(s serving.StageID, v serving.VariantID) serving.DeviceTypeID {
	for k := range m.kinds {
		for j := range m.kinds[k].options {
			o := &m.kinds[k].options[j]
			if o.stage == s && o.variant == v && slices.ContainsFunc(o.rates, func(r float64) bool { return r > 0 }) {
				return m.kinds[k].device
			}
		}
	}
	return serving.None
}

// objective returns the shortest objective of a stage's app with which the stage is served; 0 for none.
func (d *diagnoser) objective(s serving.StageID) time.Duration {
	a := d.r.Spec.Stages[s].App
	can := func(to time.Duration) bool { return d.problem(d.longer([]serving.AppID{a}, to, 1)).serves(s) }
	low := d.r.Spec.Apps[a].SLO.Latency
	return capacity.LeastObjective(low, low/1000, can)
}

// longer is a change of the objectives of apps: to a time, or else, if that is 0, by a factor.
func (d *diagnoser) longer(of []serving.AppID, to time.Duration, factor float64) *change {
	return d.altered(func(apps []serving.App) {
		for _, a := range of {
			if x := &apps[a].SLO.Latency; to > 0 {
				*x = to
			} else {
				*x = capacity.RoundObjective(time.Duration(factor * float64(*x)))
			}
		}
	})
}

// leastRelief is by how much more could be carried without a stage or a limit that keeps more from being carried.
const leastRelief = 0.005

// findBottlenecks finds the stages without which more could be carried.
func (d *diagnoser) findBottlenecks(m *problem) {
	if len(d.out.Unserved) > 0 {
		for _, u := range d.out.Unserved {
			m.stages[u.Stage].fan = 0
		}
		rest := m.reach()
		for _, u := range d.out.Unserved {
			d.out.Bottlenecks = append(d.out.Bottlenecks, capacity.Bottleneck{
				App: u.App, Stage: u.Stage, Without: rest,
			})
		}
		return
	}
	all := m.reach()
	for s := range m.stages {
		if fan := m.stages[s].fan; fan > 0 {
			m.stages[s].fan = 0
			if without := m.reach(); without > all*(1+leastRelief) {
				d.out.Bottlenecks = append(d.out.Bottlenecks, capacity.Bottleneck{
					App: m.stages[s].app, Stage: serving.StageID(s), Without: without,
				})
			}
			m.stages[s].fan = fan
		}
	}
	slices.SortStableFunc(d.out.Bottlenecks, func(a, b capacity.Bottleneck) int {
		return cmp.Compare(b.Without, a.Without)
	})
}

// reach is the largest multiple of the demand, with the batches of the demand itself, that machines in fractions carry
// within the budget; +Inf where nothing has to be served.
func (m *problem) reach() float64 {
	asks := false
	for s := range m.stages {
		asks = asks || m.stages[s].fan > 0 && !m.apps[m.stages[s].app].closed
	}
	if !asks {
		return math.Inf(1)
	}
	return m.multipleWithin(m.whole(m.all()), m.demand(), farMultiple, m.limited())
}

// findLimits finds what beside the time of machines keeps the demand from being carried.
func (d *diagnoser) findLimits() {
	if len(d.out.Unserved) > 0 {
		return
	}
	note := func(kind capacity.LimitKind, without float64) {
		if without > d.out.Multiple*(1+leastRelief) {
			d.out.Limits = append(d.out.Limits, capacity.Limit{Kind: kind, Without: without})
		}
	}
	m := d.problem(&change{})
	if !math.IsInf(m.limited(), 1) {
		note(capacity.BudgetLimit, d.problem(&change{budget: unlimited}).reach())
	}
	more := make([]int, len(d.listed))
	for t := range more {
		more[t] = d.listed[t] - d.usable(serving.DeviceTypeID(t))
	}
	if slices.Max(more) > 0 {
		note(capacity.MostLimit, d.problem(&change{add: more}).reach())
	}
	if d.out.Bound > d.out.Multiple*(1+4*searchTolerance) && m.anyCrowded(m.all()) {
		note(capacity.MemoryLimit, d.out.Bound)
	}
}

// narrow lists the apps of the bottlenecks, the worst first; all apps where none is narrower than the others.
func (d *diagnoser) narrow() (out []serving.AppID) {
	for _, b := range d.out.Bottlenecks {
		if !slices.Contains(out, b.App) {
			out = append(out, b.App)
		}
	}
	for a := range d.r.Spec.Apps {
		if len(d.out.Bottlenecks) == 0 && !d.r.Spec.Apps[a].Closed {
			out = append(out, serving.AppID(a))
		}
	}
	return out
}
