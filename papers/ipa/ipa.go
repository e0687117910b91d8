// Package ipa plans as IPA does (Ghafouri et al., JSys 2024, arXiv 2308.12871): an integer program gives every stage of
// every graph one variant, one batch size and a number of replicas. It weighs accuracy against cost and batch sizes,
// within the objective, at the demand of the request.
//
// Only the abstract and the authors' published code could be read. The program, its weights and the rank as accuracy
// are those of the code (optimizer/optimizer.py and its configurations).
package ipa

import (
	"context"
	"errors"
	"math"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Planner implements plan.Planner. It keeps nothing between plans: what runs is in the request's snapshot.
type Planner struct {
	Profile profile.Profile
	Solver  milp.Solver
	Options Options
}

// Options of a Planner.
type Options struct {
	// Accuracy is the weight of a stage's accuracy, which is the rank of its variant: 0 for the least accurate one of
	// the stage, 1 for the most accurate. Cost is the weight of a worker, which counts its price in units of the
	// cheapest. Batch is the weight of an item of a batch size. 0 means the default.
	Accuracy, Cost, Batch float64
	// Headroom is the factor on the demand; 0 means 1.
	Headroom float64
	// Batches are the batch sizes that may be planned; nil means the powers of two up to 64.
	Batches []int
}

// The weights of most of the authors' configurations.
const (
	defaultAccuracy = 10
	defaultCost     = 0.5
	defaultBatch    = 1e-6
)

// Name implements plan.Planner.
func (p *Planner) Name() string { return "ipa" }

// Provides implements plan.Planner.
func (p *Planner) Provides() plan.Sections {
	return plan.Shares | plan.Limits | plan.BatchTimeouts | plan.Budgets
}

// Plan implements plan.Planner. Where the workers do not carry the demand, all apps get the largest part of it that
// they carry. Stages for which no worker is left share one. It fails when no variant of a stage is fast enough.
func (p *Planner) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	x, err := p.read(&r)
	if err != nil {
		return nil, err
	}
	best, err := x.solve(ctx, 1, 0)
	if err != nil {
		return nil, err
	}
	part := 1.0
	if best == nil {
		// First as many stages as workers allow at all, then as much of the demand.
		if best, err = x.solve(ctx, 0, len(r.Spec.Stages)); err != nil {
			return nil, err
		}
		if best == nil {
			return nil, errors.New("planner ipa: no variant of any stage is fast enough on any worker")
		}
		more, most, err := capacity.LargestPart(func(part float64) (*choice, bool, error) {
			c, err := x.solve(ctx, part, best.left)
			return c, c != nil, err
		})
		if err != nil {
			return nil, err
		}
		if part = most; most > 0 {
			best = more
		}
	}
	return x.plan(&r, best, part), nil
}

// request is a plan.Request as the program sees it.
type request struct {
	p        *Planner
	spec     *serving.Spec
	believed profile.Profile
	rates    []float64 // queries/s by AppID, head-room included
	items    []float64 // items/s by StageID at rates
	groups   [][]serving.WorkerID
	offers   []capacity.Offer
	rank     []float64 // by VariantID
	price    []float64 // by group
	sizes    []int
}

func (p *Planner) read(r *plan.Request) (*request, error) {
	down, broken := capacity.Unusable(r.Spec, r.Snapshot)
	x := &request{
		p: p, spec: r.Spec, believed: r.Believed(p.Profile), rates: capacity.Rates(r, p.Options.Headroom),
		groups: capacity.UsableWorkers(r.Spec, down), price: capacity.Prices(r), sizes: p.Options.Batches,
		rank: make([]float64, len(r.Spec.Variants)),
	}
	if x.sizes == nil {
		x.sizes = capacity.PowersOfTwo
	}
	x.items = capacity.ItemRates(r, x.rates)
	x.offers = capacity.Offers(r, x.believed, x.groups, broken, x.sizes, 1)
	demands := capacity.StageDemands(r.Spec, x.rates)
	for s := range r.Spec.Stages {
		x.rankVariants(serving.StageID(s))
		if !x.offered(serving.StageID(s)) && !r.Spec.Apps[r.Spec.Stages[s].App].Closed {
			ask := capacity.Asked{Stage: serving.StageID(s), Budget: demands[s].Budget, Fraction: 1}
			return nil, capacity.Unserved(x.believed, r.Spec, ask, capacity.TypesOf(x.groups), broken)
		}
	}
	return x, nil
}

func (x *request) offered(s serving.StageID) bool {
	for k := range x.offers {
		if x.offers[k].Stage == s {
			return true
		}
	}
	return false
}

// rankVariants sets the rank of a stage's variants: their places by accuracy, spread evenly from 0 to 1. A lone variant
// has 1.
func (x *request) rankVariants(s serving.StageID) {
	all := x.spec.Stages[s].Variants
	for _, v := range all {
		below := 0
		for _, w := range all {
			if x.spec.Variants[w].Accuracy < x.spec.Variants[v].Accuracy {
				below++
			}
		}
		x.rank[v] = 1
		if len(all) > 1 {
			x.rank[v] = float64(below) / float64(len(all)-1)
		}
	}
}

// replicas returns the workers that an offer needs to carry a part of its stage's demand.
func (x *request) replicas(o *capacity.Offer, part float64) int {
	return max(int(math.Ceil(part*x.items[o.Stage]/o.Rate-1e-9)), 1)
}

// queueing is how long the first item of a batch waits for the last one, in s.
func (x *request) queueing(o *capacity.Offer) float64 {
	return float64(o.Batch-1) / max(x.items[o.Stage], capacity.MinRate)
}
