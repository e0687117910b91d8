// Package nexus plans as Nexus (Shen et al., SOSP 2019) does, for comparison. Graphs of models are split into models
// with objectives of their own, and these are packed by their batches and the cycles in which they take turns.
//
// As §4.2 of Scrooge (SoCC 2021) describes it, all machines count as one type, and a machine runs one batch at a time.
// Stages that accelerators do not run are on front-ends, which are not planned.
package nexus

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Planner implements plan.Planner. It keeps nothing between plans: what runs is in the request's snapshot.
type Planner struct {
	Profile profile.Profile
	Options Options
}

// Options of a Planner.
type Options struct {
	// Alike names the device type that all machines are believed to be. Empty chooses the one that serves most stages,
	// of these the one with the most workers.
	Alike string
	// Frontends is how many workers run the stages that the believed type does not; 0 means 1.
	Frontends int
	// Headroom is the factor on the demand; 0 means 1.
	Headroom float64
}

// Name implements plan.Planner.
func (p *Planner) Name() string { return "nexus" }

// Provides implements plan.Planner.
func (p *Planner) Provides() plan.Sections {
	return plan.Shares | plan.Limits | plan.BatchTimeouts | plan.Budgets
}

// Plan implements plan.Planner. If there are too few workers, all apps get the largest part of their demand for which
// there are enough. It fails when some stage cannot be served within its budget.
func (p *Planner) Plan(_ context.Context, r plan.Request) (*plan.Plan, error) {
	x, err := p.read(r)
	if err != nil {
		return nil, err
	}
	all, err := x.pack(1)
	if err != nil {
		return nil, err
	}
	if len(all) <= len(x.backends) {
		return x.plan(r, all, 1, 0), nil
	}
	most, part, err := capacity.LargestPart(func(part float64) ([]Node, bool, error) {
		nodes, err := x.pack(part)
		return nodes, len(nodes) <= len(x.backends), err
	})
	if err != nil {
		return nil, err
	}
	if part == 0 {
		return nil, fmt.Errorf("%d workers can host models and less than %.2f %% of the demand fits on them: it "+
			"takes %d more", len(x.backends), 100*capacity.DemandTolerance, len(all)-len(x.backends))
	}
	return x.plan(r, most, part, len(all)-len(x.backends)), nil
}

// request is a plan.Request as Nexus sees it.
type request struct {
	o            Options
	spec         *serving.Spec
	believed     profile.Profile
	broken       []bool
	running      []fleet.InstanceSnapshot
	rates        []float64              // queries/s by AppID, head-room included
	asked        []capacity.StageDemand // by StageID
	believedType serving.DeviceTypeID   // the type that all backends are believed to be
	backends     []serving.WorkerID
	frontends    []serving.WorkerID
	choices      []choice // by StageID
}

// choice is what is chosen for a stage.
type choice struct {
	frontend bool              // it runs in the front-ends
	variant  serving.VariantID // that is run
	slots    int               // batches at once, of a front-end only
	budget   time.Duration     // its part of the objective
}

func (p *Planner) read(r plan.Request) (*request, error) {
	x := &request{
		o: p.Options, spec: r.Spec, believed: r.Believed(p.Profile), choices: make([]choice, len(r.Spec.Stages)),
	}
	// Nexus follows the fan-outs of edges but not the ballooning of run times (Scrooge, Table 7).
	if b, ok := x.believed.(profile.Inflated); ok {
		x.believed = b.Profile
	}
	down, broken := capacity.Unusable(r.Spec, r.Snapshot)
	x.broken, x.running = broken, capacity.Reusable(r.Snapshot)
	x.rates = capacity.Rates(&r, p.Options.Headroom)
	x.asked = capacity.StageDemands(r.Spec, x.rates)
	workers := capacity.UsableWorkers(r.Spec, down)
	if err := x.chooseType(workers); err != nil {
		return nil, err
	}
	if err := x.chooseFrontends(&r, workers); err != nil {
		return nil, err
	}
	x.backends = x.interleaveTypes(workers)
	return x, nil
}

// runs reports whether some usable variant of a stage was measured on a type.
func (x *request) runs(s serving.StageID, d serving.DeviceTypeID) bool {
	return slices.ContainsFunc(x.variants(s), func(v serving.VariantID) bool {
		return x.believed.Latency(v, d, 1, 1) < profile.Unknown
	})
}

// variants lists the usable variants of a stage.
func (x *request) variants(s serving.StageID) []serving.VariantID {
	floor := x.spec.Apps[x.spec.Stages[s].App].Floor
	return slices.DeleteFunc(slices.Clone(x.spec.Stages[s].Variants), func(v serving.VariantID) bool {
		return x.broken[v] || x.spec.Variants[v].Accuracy < floor
	})
}

// chooseType sets believedType.
func (x *request) chooseType(workers [][]serving.WorkerID) error {
	x.believedType = serving.None
	best, most := -1, 0
	for d := range workers {
		if x.o.Alike != "" && x.spec.DeviceTypes[d].Name != x.o.Alike {
			continue
		}
		n := 0
		for s := range x.spec.Stages {
			if x.runs(serving.StageID(s), serving.DeviceTypeID(d)) {
				n++
			}
		}
		if len(workers[d]) == 0 && x.o.Alike == "" {
			continue
		}
		if n > best || n == best && len(workers[d]) > most {
			x.believedType, best, most = serving.DeviceTypeID(d), n, len(workers[d])
		}
	}
	switch {
	case x.believedType == serving.None && x.o.Alike != "":
		return fmt.Errorf("planner nexus: option alike is %q: no device type of that name", x.o.Alike)
	case x.believedType == serving.None:
		return fmt.Errorf("no worker is left to plan for: all %d are down", len(x.spec.Workers))
	}
	return nil
}

// chooseFrontends gives the stages that the believed type does not run to front-ends: workers of the cheapest type that
// runs all of them.
func (x *request) chooseFrontends(r *plan.Request, workers [][]serving.WorkerID) error {
	var stages []serving.StageID
	for s := range x.spec.Stages {
		if x.choices[s].frontend = !x.runs(serving.StageID(s), x.believedType); x.choices[s].frontend {
			stages = append(stages, serving.StageID(s))
		}
	}
	if len(stages) == 0 {
		return nil
	}
	best := serving.DeviceTypeID(serving.None)
	for d := range workers {
		id := serving.DeviceTypeID(d)
		all := len(workers[d]) > 0 && !slices.ContainsFunc(stages, func(s serving.StageID) bool {
			return !x.runs(s, id)
		})
		if all && (best == serving.None || r.Price(id) < r.Price(best)) {
			best = id
		}
	}
	if best == serving.None {
		s := stages[0]
		return capacity.Unservable(x.believed, x.spec, s, x.asked[s], capacity.TypesOf(workers), x.broken)
	}
	x.frontends = workers[best][:min(max(x.o.Frontends, 1), len(workers[best]))]
	for _, s := range stages {
		to := &x.choices[s]
		most := 0.0
		for _, v := range x.variants(s) {
			for slots := 1; slots <= maxSlots; slots++ {
				took := x.believed.Latency(v, best, 1, slots)
				rate := float64(slots) / took.Seconds()
				if rate <= most*(1+minGain) {
					break
				}
				to.variant, to.slots, to.budget, most = v, slots, took, rate
			}
		}
	}
	return nil
}

const (
	maxSlots = 32   // batches at once on a front-end
	minGain  = 1e-3 // by which another slot must raise the rate, relatively
)

// interleaveTypes lists the backends: the workers that run everything that the believed type runs. Types alternate in
// proportion to their number, since Nexus does not distinguish them.
func (x *request) interleaveTypes(workers [][]serving.WorkerID) []serving.WorkerID {
	type place struct {
		at     float64
		worker serving.WorkerID
	}
	var places []place
	for d := range workers {
		able := true
		for s := range x.spec.Stages {
			able = able && (x.choices[s].frontend || x.runs(serving.StageID(s), serving.DeviceTypeID(d)))
		}
		for k, w := range workers[d] {
			if able && !slices.Contains(x.frontends, w) {
				places = append(places, place{(float64(k) + 0.5) / float64(len(workers[d])), w})
			}
		}
	}
	slices.SortStableFunc(places, func(a, b place) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return int(a.worker - b.worker)
	})
	out := make([]serving.WorkerID, len(places))
	for k, p := range places {
		out[k] = p.worker
	}
	return out
}
