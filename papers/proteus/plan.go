package proteus

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// plan makes the plan of an allocation.
func (m *problem) plan(f *found, r plan.Request) *plan.Plan {
	out := r.NewPlan("proteus")
	served := make([]float64, len(m.stages)) // items/s
	for k := range f.counts {
		served[m.pairs[k].stage] += f.rates[k]
	}
	able := m.addInstances(out, &r, f, served)
	out.Forecast.CostPerHour = r.CostPerHour(out.Instances)
	m.fillForecast(out, f, served, able)
	m.prove(out, f)
	return out
}

// addInstances gives the workers their variants and shares. It returns by StageID the items/s that the stage carries
// while each instance gets its share. served is by StageID in items/s.
func (m *problem) addInstances(out *plan.Plan, r *plan.Request, f *found, served []float64) (able []float64) {
	instances := make([]int, len(m.stages))
	for k, n := range f.counts {
		instances[m.pairs[k].stage] += n
	}
	able = make([]float64, len(m.stages))
	for s := range able {
		able[s] = math.Inf(1)
	}
	groups := make([][]serving.WorkerID, len(m.groups))
	for g := range m.groups {
		groups[g] = m.groups[g].workers
	}
	offers := make([]capacity.Offer, len(m.pairs))
	for k, p := range m.pairs {
		offers[k] = capacity.Offer{Group: p.group, Stage: p.stage, Variant: p.variant, Limit: p.limit}
	}
	var of []int
	out.Instances, of, out.Loads = capacity.PlaceOffers(r, groups, offers, f.counts)
	for n, k := range of {
		p, i := &m.pairs[k], &out.Instances[n]
		switch {
		case m.o.Uniform:
			i.Share = 1 / float64(instances[p.stage])
		case served[p.stage] > 0:
			i.Share = f.rates[k] / float64(f.counts[k]) / served[p.stage]
		}
		if i.Share > 0 {
			able[p.stage] = min(able[p.stage], p.rate/i.Share)
		}
		i.BatchTimeout = max(m.stages[p.stage].Budget-seconds(float64(p.limit)/p.rate), 0)
	}
	return able
}

// fillForecast fills in what the plan carries and leaves out of each app. The slowest stage of an app decides.
func (m *problem) fillForecast(out *plan.Plan, f *found, served, able []float64) {
	apps := make([]capacity.Outlook, len(m.spec.Apps))
	for a, app := range m.spec.Apps {
		x := &apps[a]
		x.Capacity, x.Accuracy = math.Inf(1), 1
		fraction := 1.0
		for _, s := range app.Stages {
			st := &m.stages[s]
			if st.FanOut <= 0 {
				continue
			}
			x.Capacity = min(x.Capacity, able[s]/st.FanOut)
			fraction = min(fraction, served[s]/st.Rate)
			mean := 0.0
			for _, k := range st.pairs {
				if served[s] > 0 {
					mean += f.rates[k] / served[s] * m.spec.Variants[m.pairs[k].variant].Accuracy
				}
			}
			x.Accuracy *= mean
		}
		if math.IsInf(x.Capacity, 1) {
			x.Capacity = 0
		}
		first := &m.stages[app.Stages[0]]
		x.Demand, x.Served = first.demand, first.Rate*fraction
		if missing := first.Rate * max(0, 1-fraction); missing > servedTolerance*first.Rate {
			x.Missing = missing
		}
	}
	capacity.Foresee(out, apps)
}

// prove fills in how good the plan is proven to be, in the goal's own unit: mean normalised accuracy, smallest
// normalised accuracy, their blend, or multiple of the demand. If not all is served, it refers to the served part. The
// bound counts the reward for kept workers, so it is loose by the tolerance at most.
func (m *problem) prove(out *plan.Plan, f *found) {
	value, bound := f.multiple, f.bound
	if m.o.Goal != Throughput {
		value = m.value(f.counts, f.fractions)
	}
	if !f.proven || math.IsInf(bound, 0) {
		return
	}
	out.Bound, out.Proven = max(bound, value), true
	out.Gap = (out.Bound - value) / max(math.Abs(value), 1e-9)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
