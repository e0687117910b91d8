package board

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// AppView is an app with its graph.
type AppView struct {
	Schema int `json:"schema"`
	AppNow
	Graph []StageNow `json:"graph"`
	// Buckets are the lower ends of the buckets of latency, in ms. Latency counts the latest minute's served queries,
	// as pairs of bucket and count.
	Buckets []float64 `json:"buckets"`
	Latency []uint32  `json:"latency"`
	Minute  Window    `json:"minute"`
}

// StageNow is a stage of an app's graph.
type StageNow struct {
	Name     string     `json:"name"`
	Rate     float64    `json:"rate"` // tasks/s over the latest NowSpan
	BudgetMS *float64   `json:"budget_ms"`
	Ready    int        `json:"ready"` // instances
	Next     []EdgeNow  `json:"next"`
	Variants []VariantX `json:"variants"`
	Stateful bool       `json:"stateful,omitempty"`
}

// EdgeNow is an edge of a graph.
type EdgeNow struct {
	To     string  `json:"to"`
	FanOut float64 `json:"fan_out"` // items sent for each served, as configured
}

// VariantX is a variant of a stage.
type VariantX struct {
	Name     string  `json:"name"`
	Accuracy float64 `json:"accuracy"`
	Rate     float64 `json:"rate"` // tasks/s over the latest minute
	Held     int     `json:"held"` // instances that have it warm
}

// AppView returns the view of an app; false when there is none of this name.
func (b *Board) AppView(name string) (*AppView, bool) {
	a, ok := b.App(name)
	if !ok {
		return nil, false
	}
	now := b.Overview()
	b.log.Lock()
	defer b.log.Unlock()
	out := &AppView{Schema: Schema, AppNow: now.Apps[a], Buckets: BucketStarts()}
	ten, tenSpan := b.sum(NowSpan)
	minute, minuteSpan := b.sum(time.Minute)
	out.Latency, out.Minute = sparse(&minute.apps[a]), window(&minute.apps[a], minuteSpan, out.ObjectiveMS)
	force := b.plans.inForce()
	for _, id := range b.spec.Apps[a].Stages {
		st := &b.spec.Stages[id]
		x := StageNow{Name: st.Name, Next: []EdgeNow{}, Variants: []VariantX{}, Stateful: st.Stateful}
		if tenSpan > 0 {
			x.Rate = rounded(float64(ten.stages[id]) / tenSpan)
		}
		if force != nil && int(id) < len(force.plan.Budgets) && force.plan.Budgets[id] > 0 &&
			force.spec.Stages[id].Generation == st.Generation {
			budget := ms(force.plan.Budgets[id])
			x.BudgetMS = &budget
		}
		for _, e := range st.Next {
			x.Next = append(x.Next, EdgeNow{b.spec.Stages[e.To].Name, e.FanOut})
		}
		for _, v := range st.Variants {
			y := VariantX{Name: b.spec.Variants[v].Name, Accuracy: b.spec.Variants[v].Accuracy}
			if minuteSpan > 0 {
				y.Rate = rounded(float64(minute.variants[v]) / minuteSpan)
			}
			if y.Held = b.machines.holding(v); y.Held > 0 || !b.spec.Variants[v].Retired {
				x.Variants = append(x.Variants, y)
			}
		}
		for _, i := range b.machines.instances {
			if i.stage == id && i.state == readyState {
				x.Ready++
			}
		}
		out.Graph = append(out.Graph, x)
	}
	return out, true
}

// holding returns how many instances have a variant warm.
func (m *machines) holding(v serving.VariantID) (n int) {
	for _, i := range m.instances {
		for _, h := range i.variants {
			if h.variant == v && !h.loading {
				n++
			}
		}
	}
	return n
}
