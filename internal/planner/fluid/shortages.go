package fluid

import (
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/diagnosis"
	"github.com/sluice-serving/sluice/serving"
)

// findUnserved finds the stages that nothing serves, with the floors and objectives at which they could be served.
func (d *diagnoser) findUnserved(m *problem) {
	for s := range m.stages {
		id, a := serving.StageID(s), m.stages[s].app
		if m.apps[a].closed || m.stages[s].fan <= 0 || m.serves(id) {
			continue
		}
		u := diagnosis.UnservedStage{App: a, Stage: id, Variant: serving.None, Device: serving.None}
		free := d.problem(d.Altered(func(apps []serving.App) { apps[a].Floor = 0 }))
		for _, v := range d.Request.Spec.Stages[s].Variants {
			if free.servesWith(id, v) != serving.None {
				u.Floor = max(u.Floor, d.Request.Spec.Variants[v].Accuracy)
			}
		}
		u.SLO = d.objective(id)
		if u.SLO > 0 {
			longer := d.problem(d.longer(a, u.SLO))
			for _, v := range d.Request.Spec.Stages[s].Variants {
				if device := longer.servesWith(id, v); device != serving.None && u.Variant == serving.None {
					u.Variant, u.Device = v, device
				}
			}
		}
		d.Out.Unserved = append(d.Out.Unserved, u)
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
	a := d.Request.Spec.Stages[s].App
	can := func(to time.Duration) bool { return d.problem(d.longer(a, to)).serves(s) }
	low := d.Request.Spec.Apps[a].SLO.Latency
	return diagnosis.LeastObjective(low, low/1000, can)
}

// longer is a change of an app's objective.
func (d *diagnoser) longer(a serving.AppID, to time.Duration) *diagnosis.Change {
	return d.Altered(func(apps []serving.App) { apps[a].SLO.Latency = to })
}

// findBottlenecks finds the stages without which more could be carried.
func (d *diagnoser) findBottlenecks(m *problem) {
	d.FindBottlenecks(m.reach(), func(stages []serving.StageID) float64 {
		fans := make([]float64, len(stages))
		for k, s := range stages {
			fans[k], m.stages[s].fan = m.stages[s].fan, 0
		}
		rest := m.reach()
		for k, s := range stages {
			m.stages[s].fan = fans[k]
		}
		return rest
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
	if len(d.Out.Unserved) > 0 {
		return
	}
	note := func(kind diagnosis.LimitKind, without float64) {
		if without > d.Out.Multiple*(1+diagnosis.MinRelief) {
			d.Out.Limits = append(d.Out.Limits, diagnosis.Limit{Kind: kind, Without: without})
		}
	}
	m := d.problem(&diagnosis.Change{})
	if !math.IsInf(m.limited(), 1) {
		note(diagnosis.BudgetLimit, d.problem(&diagnosis.Change{Budget: unlimited}).reach())
	}
	more := make([]int, len(d.listed))
	for t := range more {
		more[t] = d.listed[t] - d.usable(serving.DeviceTypeID(t))
	}
	if slices.Max(more) > 0 {
		note(diagnosis.MostLimit, d.problem(&diagnosis.Change{Add: more}).reach())
	}
	if d.Out.Bound > d.Out.Multiple*(1+4*diagnosis.Tolerance) && m.anyCrowded(m.all()) {
		note(diagnosis.MemoryLimit, d.Out.Bound)
	}
}
