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
	able := m.addInstances(out, f, served)
	out.Forecast.CostPerHour = r.CostPerHour(out.Instances)
	m.fillForecast(out, f, served, able)
	m.prove(out, f)
	return out
}

// addInstances gives the workers their variants and shares. It returns by StageID the items/s that the stage carries
// while each instance gets its share. served is by StageID in items/s.
func (m *problem) addInstances(out *plan.Plan, f *found, served []float64) (able []float64) {
	var hosts map[serving.WorkerID]int
	hosts, out.Loads = m.placeCounts(f.counts)
	instances := make([]int, len(m.stages))
	for k, n := range f.counts {
		instances[m.pairs[k].stage] += n
	}
	able = make([]float64, len(m.stages))
	for s := range able {
		able[s] = math.Inf(1)
	}
	for w := range m.spec.Workers {
		k, ok := hosts[serving.WorkerID(w)]
		if !ok {
			continue
		}
		p := &m.pairs[k]
		device := m.spec.Workers[w].DeviceType
		share := 0.0
		switch {
		case m.o.Uniform:
			share = 1 / float64(instances[p.stage])
		case served[p.stage] > 0:
			share = f.rates[k] / float64(f.counts[k]) / served[p.stage]
		}
		if share > 0 {
			able[p.stage] = min(able[p.stage], p.rate/share)
		}
		run := float64(p.limit) / p.rate
		out.Instances = append(out.Instances, plan.Instance{
			Worker: serving.WorkerID(w), Place: 1, Stage: p.stage,
			Variants: []plan.Variant{{Variant: p.variant, Limit: p.limit}}, Slots: 1,
			Cores: m.spec.DeviceTypes[device].Cores, Share: share, Hold: max(m.stages[p.stage].Budget-seconds(run), 0),
		})
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

// placeCounts distributes counts over the workers with the fewest loads.
func (m *problem) placeCounts(counts []int) (hosts map[serving.WorkerID]int, loads int) {
	groups := make([][]serving.WorkerID, len(m.groups))
	for g := range m.groups {
		groups[g] = m.groups[g].workers
	}
	list := make([]capacity.GroupVariant, len(m.pairs))
	for k, p := range m.pairs {
		list[k] = capacity.GroupVariant{Group: p.group, Stage: p.stage, Variant: p.variant}
	}
	return capacity.PlaceCounts(groups, list, counts, m.byWorker)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
