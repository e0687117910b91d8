package proteus

import (
	"slices"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// problem is a request in the terms of the program. Workers that are alike form a group, since it does not matter which
// of them hosts a variant. The program then has a column for each (group, variant) instead of each (device, variant) of
// §4: the same optimum, and a size that does not grow with the fleet.
type problem struct {
	o        Options
	spec     *serving.Spec
	groups   []group
	stages   []stage // by StageID
	pairs    []pair
	byWorker map[serving.WorkerID]fleet.InstanceSnapshot // what each worker serves, by the snapshot
	lifted   float64                                     // how much of every stage's lift is planned for, from 0 to 1
	// counts by pair that the search may begin with; nil for none
	hint []int
}

// group is workers of one device type that may serve the same stages.
type group struct {
	device  serving.DeviceTypeID
	stage   serving.StageID // the only stage they may serve; serving.None for any
	workers []serving.WorkerID
}

// stage is the demand on a stage and the pairs that can serve it.
type stage struct {
	capacity.StageDemand
	demand float64 // items/s, with head-room
	// lift is by what part of the demand clumps ask for more head-room; 0 where nobody asks for that
	lift   float64
	weight float64 // of an item served in the objective
	pairs  []int   // by falling accuracy
}

// pair is a variant that a group can serve.
type pair struct {
	group    int
	stage    serving.StageID
	variant  serving.VariantID
	limit    int     // items of a batch
	rate     float64 // items/s that a worker carries: P of §4
	accuracy float64 // normalised by the stage's most accurate variant
}

// newProblem reads the request. It fails when nothing can serve some stage.
func (p *Planner) newProblem(r plan.Request) (*problem, error) {
	m, broken := p.read(r)
	for s := range m.stages {
		if len(m.stages[s].pairs) == 0 {
			return nil, m.unservable(r.Believed(p.Profile), serving.StageID(s), broken)
		}
	}
	return m, nil
}

// read reads the request. Every device type in growing gets a group whose workers may serve anything, even if it has no
// workers: for questions about larger fleets. broken is by VariantID.
func (p *Planner) read(r plan.Request, growing ...serving.DeviceTypeID) (m *problem, broken []bool) {
	m = &problem{o: p.Options.filled(), spec: r.Spec, byWorker: capacity.RunningByWorker(r.Snapshot)}
	down, broken := capacity.Unusable(r.Spec, r.Snapshot)
	for w, x := range r.Spec.Workers {
		if down[w] {
			continue
		}
		id := serving.WorkerID(w)
		only := serving.StageID(serving.None)
		if i, ok := m.byWorker[id]; ok && m.o.Place == Fixed {
			only = i.Stage
		}
		at := slices.IndexFunc(m.groups, func(g group) bool { return g.device == x.DeviceType && g.stage == only })
		if at < 0 {
			at = len(m.groups)
			m.groups = append(m.groups, group{device: x.DeviceType, stage: only})
		}
		m.groups[at].workers = append(m.groups[at].workers, id)
	}
	for _, d := range growing {
		if !slices.ContainsFunc(m.groups, func(g group) bool { return g.device == d && g.stage == serving.None }) {
			m.groups = append(m.groups, group{device: d, stage: serving.None})
		}
	}
	m.readDemand(r)
	for s := range m.stages {
		m.addPairs(r.Believed(p.Profile), serving.StageID(s), broken)
	}
	return m, broken
}

// readDemand fills in what is asked of each stage.
func (m *problem) readDemand(r plan.Request) {
	m.stages = make([]stage, len(r.Spec.Stages))
	for s, asked := range capacity.StageDemands(r.Spec, r.Rates) {
		app := &r.Spec.Apps[asked.App]
		weight := app.Weight / float64(len(app.Stages))
		if asked.FanOut > 0 {
			weight *= asked.Rate / asked.FanOut / max(asked.Rate, capacity.MinRate)
		}
		// A stage that hardly any items reach is served like an idle app.
		asked.Rate = max(asked.Rate, capacity.MinRate)
		m.stages[s] = stage{StageDemand: asked, demand: asked.Rate * m.o.Headroom, weight: weight}
		if m.o.Bursts {
			m.stages[s].lift = lift(r, asked.App)
		}
	}
}

// rule says how much of a variant may be planned on a worker.
func (m *problem) rule() capacity.BatchRule {
	return capacity.BatchRule{Fraction: m.o.Fraction, Batches: m.o.Batches, Single: m.o.Single}
}

// addPairs lists the pairs that can serve a stage: per group every variant that meets the objective and is not
// dominated by one at least as accurate and fast in the same group.
func (m *problem) addPairs(believed profile.Profile, s serving.StageID, broken []bool) {
	st := &m.stages[s]
	rule := m.rule()
	var all []pair
	for g := range m.groups {
		if only := m.groups[g].stage; only != serving.None && only != s {
			continue
		}
		for _, v := range m.spec.Stages[s].Variants {
			if broken[v] {
				continue
			}
			if limit, rate := rule.Capacity(believed, m.spec, v, m.groups[g].device, st.Budget); limit > 0 {
				value := st.NormalizedAccuracy(&m.spec.Variants[v])
				all = append(all, pair{group: g, stage: s, variant: v, limit: limit, rate: rate, accuracy: value})
			}
		}
	}
	all = m.selected(all)
	for i, x := range all {
		dominated := slices.ContainsFunc(all, func(y pair) bool {
			better := y.accuracy >= x.accuracy && y.rate >= x.rate &&
				(y.accuracy > x.accuracy || y.rate > x.rate || y.variant < x.variant)
			return y.group == x.group && y.variant != x.variant && better
		})
		if !dominated {
			st.pairs = append(st.pairs, len(m.pairs))
			m.pairs = append(m.pairs, all[i])
		}
	}
	slices.SortStableFunc(st.pairs, func(a, b int) int {
		switch x, y := &m.pairs[a], &m.pairs[b]; {
		case x.accuracy > y.accuracy:
			return -1
		case x.accuracy < y.accuracy:
			return 1
		}
		return a - b
	})
}

// selected returns the pairs that the option Select leaves each stage.
func (m *problem) selected(all []pair) []pair {
	if m.o.Select == AnyVariant || len(all) == 0 {
		return all
	}
	chosen := all[0]
	for _, x := range all[1:] {
		if m.o.Select == MostAccurate && x.accuracy > chosen.accuracy || m.o.Select == LeastAccurate &&
			x.accuracy < chosen.accuracy {
			chosen = x
		}
	}
	return slices.DeleteFunc(all, func(x pair) bool { return x.variant != chosen.variant })
}

// unservable says why nothing can serve a stage.
func (m *problem) unservable(believed profile.Profile, s serving.StageID, broken []bool) error {
	devices := make([]serving.DeviceTypeID, len(m.groups))
	for g := range m.groups {
		devices[g] = m.groups[g].device
	}
	return capacity.Unservable(believed, m.spec, s, m.stages[s].StageDemand, devices, broken)
}
