// Package plan is the common currency between planners and everything that runs: what to run where, how traffic is
// shared, what is promised and how good that is proven to be. It is plain data; planners stand in folders below.
package plan

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Plan is what a planner answers.
type Plan struct {
	Planner string
	// Snapshot is the Seq of the fleet snapshot it was made from; a plan older than the one in force is dropped.
	Snapshot  uint64
	Instances []Instance
	// Prefer lists device types in the order in which central queues should use them; nil leaves it to the router.
	Prefer []serving.DeviceTypeID
	// Budgets is, by StageID, the share of the end-to-end objective given to each stage; nil where a plan has none.
	Budgets []time.Duration
	// Policies say what to run in which state of a queue; nil where a plan has none.
	Policies []Policies
	// Prices say what states of a whole stage are worth; nil where a plan has none.
	Values []ValueFunctions `json:"Prices"`
	// Demand is, by AppID, the rate in queries/s that the plan was made for, head-room included; nil when it was made
	// for none in particular. Capacity is the rate it can carry while each instance gets its share; nil when not known.
	Demand, Capacity []float64
	// Mixes are, by AppID, the sizes of queries that the plan was made for; nil when it does not depend on them.
	Mixes []serving.Mix
	// Fans are, by StageID in the order of its edges, the items sent for each item served, and Ballooning by StageID
	// the time that batches take for each second they were believed to take, that the plan was made with; nil when they
	// were what is configured, and what is believed. The engine, which asked with them, fills them in.
	FanOuts    [][]float64 `json:"Fans"`
	Ballooning []float64
	// Worth is, by StageID and DeviceTypeID, what an instance more of a type would add to what the stage can carry, in
	// queries/s: the types of a stage compare by it. Nil where a plan does not say.
	MarginalRates [][]float64 `json:"Worth"`
	// Shed is, by AppID, the part of Demand that the plan knowingly does not serve; nil when it serves everything.
	Shed []float64
	// Short is, by DeviceTypeID, how many machines more than there are it would take to serve all of Demand; nil when
	// nothing is short, or not known.
	Shortage []int `json:"Short"`
	// Loads counts the variants that have to be brought up to get from the snapshot to the plan.
	Loads    int
	Forecast Forecast
	// Bound is the proven best value of the planner's objective, Gap the relative distance to it; Proven tells whether
	// they mean anything.
	Bound, Gap float64
	Proven     bool
	// Cost tells that the objective is Forecast.CostPerHour, and Bound what no plan costs less than.
	BoundsCost bool `json:"Cost"`
}

// Instance is one instance to run. Its identity across plans (fleet.Key) is its worker and its Place there, so that a
// plan which changes only a variant becomes a load, not a new instance.
type Instance struct {
	Worker serving.WorkerID
	// Place numbers the instances of a worker from 1; 0 takes the position among the worker's instances in the list.
	Place    int32
	Stage    serving.StageID
	Variants []Variant // the first is the active one
	Slots    int       // batches at once, >= 1
	Built    int       // slots to launch it with, so that later plans may want as many without a load; 0 means Slots
	Cores    int       // threads a run may use; 0 shares the worker, all of whose cores it may use
	Share    float64   // of the stage's traffic, >= 0; shares of a stage add up to 1
	// Hold is the longest a batch being filled may wait, for batchers that want one (INFless §3.2); 0 when not planned.
	Hold time.Duration
	// Part is the share of its worker that the instance gets: 1 + the DeviceTypeID of a part, or 0 for the whole
	// worker.
	Part int32
	// Accelerator says which of the worker's accelerators a part takes some of, from 0.
	Accelerator int32
	// Low and Up bound the rate in queries/s at which the instance is to be sent queries: below Low its batches do not
	// fill in time, above Up they wait for each other (INFless Eq. 1). Both are 0 when not planned.
	Low, Up float64
}

// DeviceType returns what the instance's latency is that of: the part it gets, or its worker's type.
func (i *Instance) DeviceType(spec *serving.Spec) serving.DeviceTypeID {
	if i.Part > 0 {
		return serving.DeviceTypeID(i.Part - 1)
	}
	return spec.Workers[i.Worker].DeviceType
}

// Sort orders the instances by worker, and those of a worker by their places.
func (p *Plan) Sort() {
	slices.SortStableFunc(p.Instances, func(a, b Instance) int {
		return cmp.Or(cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.Place, b.Place))
	})
}

// Variant is a model on an instance with its batch limit.
type Variant struct {
	Variant serving.VariantID
	Limit   int // items, >= 1
}

// Forecast is what a plan expects of itself.
type Forecast struct {
	CostPerHour float64 // $/h
	Throughput  float64 // queries/s it can carry
	Accuracy    float64 // mean over served queries
	Violation   float64 // share of queries that miss the objective; negative when not forecast
}

// Sections is a set of the parts of a plan that a rule cannot do without.
type Sections uint8

// The sections a router, batcher or scaler may need.
const (
	Shares  Sections = 1 << iota // Instance.Share
	Limits                       // Variant.Limit derived from the objective
	Holds                        // Instance.Hold
	Budgets                      // Plan.Budgets
	Tables                       // Plan.Policies
	Values                       // Plan.Prices
	Bands                        // Instance.Low and Up
)

var sectionNames = []string{"shares", "limits", "holds", "budgets", "policy tables", "prices", "rate bands"}

// String lists the sections by name.
func (s Sections) String() string {
	out := ""
	for i, n := range sectionNames {
		if s&(1<<i) != 0 {
			if out != "" {
				out += ", "
			}
			out += n
		}
	}
	if out == "" {
		return "none"
	}
	return out
}

// Request is what a planner is asked.
type Request struct {
	Spec     *serving.Spec
	Snapshot *fleet.Snapshot // nil before anything runs
	Rates    []float64       // observed demand by AppID, queries/s
	// Mixes are the observed sizes of queries by AppID; nil takes those to be expected (serving.App.Mix).
	Mixes []serving.Mix
	// Beliefs is what is believed of latency now, where that is learned while serving or batches were seen to balloon;
	// it does not change any more. Nil leaves a planner with the profile it was made with; see Believed.
	Beliefs profile.Profile
	// Prices are by DeviceTypeID, in $/h; nil takes those of Spec.
	Prices []float64
}

// Price returns what a machine of a type costs, in $/h.
func (r *Request) Price(d serving.DeviceTypeID) float64 {
	if r.Prices != nil {
		return r.Prices[d]
	}
	return r.Spec.DeviceTypes[d].PricePerHour
}

// CostPerHour returns the rent in $/h, by Price, of the workers that run any of the instances. A worker counts once,
// however many of the instances it runs.
func (r *Request) CostPerHour(instances []Instance) (sum float64) {
	counted := make([]bool, len(r.Spec.Workers))
	for i := range instances {
		if w := instances[i].Worker; !counted[w] {
			counted[w] = true
			sum += r.Price(r.Spec.Workers[w].DeviceType)
		}
	}
	return sum
}

// Mix returns the sizes of queries of an app to plan for.
func (r *Request) Mix(a serving.AppID) *serving.Mix {
	if int(a) < len(r.Mixes) {
		return &r.Mixes[a]
	}
	return &r.Spec.Apps[a].Mix
}

// Believed returns what is believed of latency: Beliefs, or what a planner was made with.
func (r *Request) Believed(made profile.Profile) profile.Profile {
	if r.Beliefs != nil {
		return r.Beliefs
	}
	return made
}

// Planner makes plans. It must be deterministic: bounded by gap and node count rather than by time, so that the same
// request has the same answer on every machine. The data plane ends ctx when its patience does.
type Planner interface {
	// Name is the planner's registry name.
	Name() string
	// Provides lists the sections its plans carry.
	Provides() Sections
	// Plan answers a request, or fails with what makes it impossible.
	Plan(ctx context.Context, r Request) (*Plan, error)
}

// Validate reports the first thing about p that spec or the plan's own rules forbid.
func (p *Plan) Validate(spec *serving.Spec) error {
	for n, i := range p.Instances {
		at := fmt.Sprintf("plan of %s, instance %d", p.Planner, n)
		if i.Worker < 0 || int(i.Worker) >= len(spec.Workers) {
			return fmt.Errorf("%s: worker %d does not exist", at, i.Worker)
		}
		if i.Stage < 0 || int(i.Stage) >= len(spec.Stages) {
			return fmt.Errorf("%s: stage %d does not exist", at, i.Stage)
		}
		if a := int(spec.Stages[i.Stage].App); a < len(spec.Apps) && spec.Apps[a].Closed {
			return fmt.Errorf("%s: app %q is closed", at, spec.Apps[a].Name)
		}
		if i.Slots < 1 {
			return fmt.Errorf("%s: slots is %d, want at least 1", at, i.Slots)
		}
		if d := int(i.Part) - 1; i.Part < 0 || d >= len(spec.DeviceTypes) || d >= 0 && !spec.DeviceTypes[d].Part {
			return fmt.Errorf("%s: part %d is not 1 + the number of a device type that is a part", at, i.Part)
		}
		if n := spec.DeviceTypes[spec.Workers[i.Worker].DeviceType].Accelerators; i.Accelerator < 0 ||
			i.Accelerator > 0 && int(i.Accelerator) >= n {
			return fmt.Errorf("%s: accelerator %d does not exist, its worker has %d", at, i.Accelerator, n)
		}
		if !(i.Low >= 0 && i.Low <= i.Up) || math.IsInf(i.Up, 0) {
			return fmt.Errorf("%s: rates from %v to %v, want 0 <= low <= up", at, i.Low, i.Up)
		}
		if !(i.Share >= 0) {
			return fmt.Errorf("%s: share is %v, want at least 0", at, i.Share)
		}
		if len(i.Variants) == 0 {
			return fmt.Errorf("%s: has no variant", at)
		}
		for _, v := range i.Variants {
			if v.Variant < 0 || int(v.Variant) >= len(spec.Variants) || spec.Variants[v.Variant].Stage != i.Stage {
				return fmt.Errorf("%s: variant %d does not belong to stage %q", at, v.Variant,
					spec.Stages[i.Stage].Name)
			}
			if v.Limit < 1 || v.Limit > spec.Variants[v.Variant].MaxBatch {
				return fmt.Errorf("%s: batch limit of %q is %d, want 1 to %d", at, spec.Variants[v.Variant].Name,
					v.Limit, spec.Variants[v.Variant].MaxBatch)
			}
		}
	}
	if err := p.partsFit(spec); err != nil {
		return err
	}
	for i := range p.Policies {
		if err := p.Policies[i].validate(spec); err != nil {
			return fmt.Errorf("plan of %s, policies %d: %w", p.Planner, i, err)
		}
	}
	for i := range p.Values {
		if err := p.Values[i].validate(spec); err != nil {
			return fmt.Errorf("plan of %s, prices %d: %w", p.Planner, i, err)
		}
	}
	if p.MarginalRates != nil && len(p.MarginalRates) != len(spec.Stages) {
		return fmt.Errorf("plan of %s: worths of %d stages for %d stages", p.Planner, len(p.MarginalRates), len(spec.Stages))
	}
	for t, worth := range p.MarginalRates {
		if worth != nil && len(worth) != len(spec.DeviceTypes) {
			return fmt.Errorf("plan of %s, stage %q: %d worths for %d device types", p.Planner, spec.Stages[t].Name,
				len(worth), len(spec.DeviceTypes))
		}
		for d, w := range worth {
			if !(w >= 0) || math.IsInf(w, 0) {
				return fmt.Errorf("plan of %s, stage %q: the worth of %q is %v, want a finite number of at least 0",
					p.Planner, spec.Stages[t].Name, spec.DeviceTypes[d].Name, w)
			}
		}
	}
	if p.Budgets != nil && len(p.Budgets) != len(spec.Stages) {
		return fmt.Errorf("plan of %s: %d budgets for %d stages", p.Planner, len(p.Budgets), len(spec.Stages))
	}
	return nil
}
