package proteus

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// problem is a request in the terms of the program: workers that are alike are one group, since which of them hosts a
// variant makes no difference. The program then has a column for each (group, variant) rather than for each (device,
// variant) of §4, the same optimum, and a size that does not grow with the fleet.
type problem struct {
	o       Options
	spec    *serving.Spec
	groups  []group
	stages  []stage // by StageID
	pairs   []pair
	running map[serving.WorkerID]fleet.InstanceSnapshot // what each worker serves, by the snapshot
}

// group is workers of one device type that may serve the same stages.
type group struct {
	device  serving.DeviceTypeID
	stage   serving.StageID // the only one they may serve; serving.None for any
	workers []serving.WorkerID
}

// stage is what is asked of a stage.
type stage struct {
	app    serving.AppID
	asked  float64 // items/s, without head-room
	demand float64 // with it
	fan    float64 // items that reach the stage for each query of the app
	weight float64 // of an item served in the objective
	within time.Duration
	best   float64 // accuracy of its most accurate variant
	pairs  []int   // by falling accuracy
}

// pair is a variant that a group can serve.
type pair struct {
	group   int
	stage   serving.StageID
	variant serving.VariantID
	limit   int     // items of a batch
	rate    float64 // items/s that a worker carries: P of §4
	value   float64 // accuracy divided by that of the stage's most accurate variant
}

// newProblem reads the request. It fails when a stage cannot be served by anything.
func (p *Planner) newProblem(r plan.Request) (*problem, error) {
	m := &problem{o: p.Options.filled(), spec: r.Spec, running: make(map[serving.WorkerID]fleet.InstanceSnapshot)}
	down := make([]bool, len(r.Spec.Workers))
	broken := make([]bool, len(r.Spec.Variants))
	if r.Snapshot != nil {
		for _, w := range r.Snapshot.Down {
			down[w] = true
		}
		for _, v := range r.Snapshot.Broken {
			broken[v] = true
		}
		for _, i := range r.Snapshot.Instances {
			if i.State != fleet.Draining && i.State != fleet.Stopped {
				m.running[i.Key.Worker] = i
			}
		}
	}
	for w, x := range r.Spec.Workers {
		if down[w] {
			continue
		}
		id := serving.WorkerID(w)
		only := serving.StageID(serving.None)
		if i, ok := m.running[id]; ok && m.o.Place == Fixed {
			only = i.Stage
		}
		at := slices.IndexFunc(m.groups, func(g group) bool { return g.device == x.DeviceType && g.stage == only })
		if at < 0 {
			at = len(m.groups)
			m.groups = append(m.groups, group{device: x.DeviceType, stage: only})
		}
		m.groups[at].workers = append(m.groups[at].workers, id)
	}
	m.ask(r)
	for s := range m.stages {
		m.offer(p.Profile, serving.StageID(s), broken)
		if len(m.stages[s].pairs) == 0 {
			return nil, m.hopeless(p.Profile, serving.StageID(s), down, broken)
		}
	}
	return m, nil
}

// ask fills in what is asked of each stage.
func (m *problem) ask(r plan.Request) {
	m.stages = make([]stage, len(r.Spec.Stages))
	for a, app := range r.Spec.Apps {
		rate := 0.0
		if a < len(r.Rates) {
			rate = max(r.Rates[a], 0)
		}
		rate = max(rate, least)
		depth, longest := make(map[serving.StageID]int), 1
		for _, s := range app.Stages {
			st := &m.stages[s]
			if depth[s] == 0 {
				depth[s], st.fan = 1, 1
			}
			longest = max(longest, depth[s])
			st.app, st.weight = serving.AppID(a), app.Weight/float64(len(app.Stages))
			st.asked = rate * st.fan
			st.demand = st.asked * m.o.Headroom
			if st.fan > 0 {
				st.weight /= st.fan
			}
			for _, v := range r.Spec.Stages[s].Variants {
				st.best = max(st.best, r.Spec.Variants[v].Accuracy)
			}
			for _, e := range r.Spec.Stages[s].Next {
				depth[e.To] = max(depth[e.To], depth[s]+1)
				if r.Spec.Stages[e.To].Joins == 1 {
					m.stages[e.To].fan = st.fan * e.FanOut
				} else {
					m.stages[e.To].fan = 1 // a join starts one item when its parts are there
				}
			}
		}
		for _, s := range app.Stages {
			m.stages[s].within = part(app.SLO.Latency, longest)
		}
	}
}

// least is the rate in queries/s that an app nobody calls is planned for, so that the first who does finds it served.
const least = 0.01

// offer lists what can serve a stage: per group every variant that meets the objective and is not dominated by one at least
// as accurate and fast on the same group.
func (m *problem) offer(believed profile.Profile, s serving.StageID, broken []bool) {
	st := &m.stages[s]
	var all []pair
	for g := range m.groups {
		if only := m.groups[g].stage; only != serving.None && only != s {
			continue
		}
		for _, v := range m.spec.Stages[s].Variants {
			if broken[v] {
				continue
			}
			if limit, rate := m.capacity(believed, v, m.groups[g].device, st.within); limit > 0 {
				value := 1.0
				if st.best > 0 {
					value = m.spec.Variants[v].Accuracy / st.best
				}
				all = append(all, pair{group: g, stage: s, variant: v, limit: limit, rate: rate, value: value})
			}
		}
	}
	all = m.selected(all)
	for i, x := range all {
		dominated := slices.ContainsFunc(all, func(y pair) bool {
			better := y.value >= x.value && y.rate >= x.rate && (y.value > x.value || y.rate > x.rate || y.variant < x.variant)
			return y.group == x.group && y.variant != x.variant && better
		})
		if !dominated {
			st.pairs = append(st.pairs, len(m.pairs))
			m.pairs = append(m.pairs, all[i])
		}
	}
	slices.SortStableFunc(st.pairs, func(a, b int) int {
		switch x, y := &m.pairs[a], &m.pairs[b]; {
		case x.value > y.value:
			return -1
		case x.value < y.value:
			return 1
		}
		return a - b
	})
}

// capacity is P of §4: the rate of the largest batch that takes less than the given fraction of the objective, so that a
// query which has just missed a batch is in time with the next, and that fits the device's memory. A limit of 0 is never.
func (m *problem) capacity(believed profile.Profile, v serving.VariantID, d serving.DeviceTypeID, within time.Duration) (limit int, rate float64) {
	x, device := &m.spec.Variants[v], &m.spec.DeviceTypes[d]
	if x.Accuracy < m.spec.Apps[m.stages[x.Stage].app].Floor {
		return 0, 0
	}
	bound := x.MaxBatch
	if m.o.Single {
		bound = 1
	}
	if device.MemoryBytes > 0 {
		if x.MemoryBytes > device.MemoryBytes {
			return 0, 0
		}
		if x.ItemBytes > 0 {
			bound = min(bound, int((device.MemoryBytes-x.MemoryBytes)/x.ItemBytes))
		}
	}
	limit = min(bound, profile.BatchLimit(believed, m.spec, v, d, 1, time.Duration(m.o.Fraction*float64(within))-1))
	if m.o.Batches != nil {
		fits := 0
		for _, b := range m.o.Batches {
			if b <= limit {
				fits = max(fits, b)
			}
		}
		limit = fits
	}
	if limit <= 0 {
		return 0, 0
	}
	return limit, float64(limit) / believed.Latency(v, d, limit, 1).Seconds()
}

// selected leaves each stage the variant that the selection wants.
func (m *problem) selected(all []pair) []pair {
	if m.o.Select == AnyVariant || len(all) == 0 {
		return all
	}
	chosen := all[0]
	for _, x := range all[1:] {
		if m.o.Select == MostAccurate && x.value > chosen.value || m.o.Select == LeastAccurate && x.value < chosen.value {
			chosen = x
		}
	}
	return slices.DeleteFunc(all, func(x pair) bool { return x.variant != chosen.variant })
}

// hopeless says why nothing can serve a stage.
func (m *problem) hopeless(believed profile.Profile, s serving.StageID, down, broken []bool) error {
	st := &m.stages[s]
	app := &m.spec.Apps[st.app]
	if len(m.groups) == 0 {
		return fmt.Errorf("no worker is left to plan for: all %d are down", len(down))
	}
	best, what := profile.Unknown, ""
	for _, v := range m.spec.Stages[s].Variants {
		for _, g := range m.groups {
			if l := believed.Latency(v, g.device, 1, 1); l < best && !broken[v] {
				best = l
				what = fmt.Sprintf("%q on %q takes %v for one item", m.spec.Variants[v].Name, m.spec.DeviceTypes[g.device].Name, l.Round(10*time.Microsecond))
			}
		}
	}
	if what == "" {
		what = "none of them was measured on these workers, or all failed to load: run 'sluice profile'"
	}
	floor := ""
	if app.Floor > 0 {
		floor = fmt.Sprintf(" and accuracy_floor is %v", app.Floor)
	}
	return fmt.Errorf("app %q: no variant of stage %q meets the objective on any worker: the fastest, %s; half of the stage's part of the SLO is %v%s. Use a faster variant or device, raise the SLO, or lower the floor",
		app.Name, m.spec.Stages[s].Name, what, (st.within / 2).Round(10*time.Microsecond), floor)
}
