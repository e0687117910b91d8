// Package loki plans as Loki does (Ahmad, Guan and Sitaraman, HPDC 2024, arXiv 2407.03583), for pipelines whose stages
// all have variants. A path is a variant for every stage on the way from the first stage to a last one; its accuracy is
// the product of theirs. While the most accurate variants carry the demand, they run on as few servers as do (hardware
// scaling). Beyond that all servers are used, for the highest mean accuracy over paths (accuracy scaling).
//
// Only the abstract and the authors' published code could be read. The two programs are those of the code
// (src/simulator/algorithms/pipeline_ilp.py), with these differences:
//
//   - The code's programs are bilinear: they choose a batch size for every variant. Here paths name batch sizes, too,
//     which makes the programs linear; servers of one variant may differ in them.
//   - Fan-outs belong to edges, not to variants.
//   - A pipeline that branches splits its queries by path in each branch, such that the branches agree on the shares of
//     the stages before; the code looks at one branch. Its accuracy is the mean over branches.
//   - Servers may be of several types and count by their price. There may be several pipelines.
//   - Where not even the least accurate variants carry the demand, as much as can be is served.
package loki

import (
	"cmp"
	"context"
	"errors"
	"fmt"

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
	// MostAccurate plans with the most accurate variant of each stage only: hardware scaling without accuracy scaling.
	MostAccurate bool
	// Headroom is the factor on the demand; 0 means 1.05 (the authors' configurations).
	Headroom float64
	// Batches are the batch sizes that may be planned; nil means the powers of two up to 64.
	Batches []int
}

const (
	defaultHeadroom = 1.05
	// pathPart is the part of the objective that the batches of a path may take. The other half is for queues.
	pathPart = 0.5
)

// Name implements plan.Planner.
func (p *Planner) Name() string { return "loki" }

// Provides implements plan.Planner.
func (p *Planner) Provides() plan.Sections {
	return plan.Shares | plan.Limits | plan.BatchTimeouts | plan.Budgets
}

// Plan implements plan.Planner. A plan that cannot carry the demand says in Shed what it leaves out. Stages for which
// no worker is left share one. It fails for a pipeline whose branches join, and when no path of a pipeline takes half
// of its objective or less.
func (p *Planner) Plan(ctx context.Context, r plan.Request) (*plan.Plan, error) {
	x, err := p.read(&r)
	if err != nil {
		return nil, err
	}
	best, err := x.solve(ctx, hardwareScaling)
	if err != nil {
		return nil, err
	}
	if best == nil {
		if best, err = x.solve(ctx, accuracyScaling); err != nil {
			return nil, err
		}
	}
	if best == nil {
		return nil, errors.New("planner loki: the solver's limits ended the search for a plan before there was one")
	}
	return x.plan(&r, best), nil
}

// request is a plan.Request as the programs see it.
type request struct {
	p         *Planner
	spec      *serving.Spec
	believed  profile.Profile
	rates     []float64 // queries/s by AppID, head-room included
	items     []float64 // items/s by StageID at rates
	groups    [][]serving.WorkerID
	offers    []capacity.Offer
	price     []float64 // by group
	pipelines []pipe
}

// pipe is the paths of a pipeline.
type pipe struct {
	app      serving.AppID
	branches []branch
}

// branch is a way from the first stage to a last one.
type branch struct {
	stages []serving.StageID
	paths  []path
}

// path is an offer for every stage of a branch.
type path struct {
	offers   []int
	accuracy float64 // the product, relative to that of the most accurate variants of these stages
	work     float64 // seconds of a server for a query
}

func (p *Planner) read(r *plan.Request) (*request, error) {
	down, broken := capacity.Unusable(r.Spec, r.Snapshot)
	x := &request{
		p: p, spec: r.Spec, believed: r.Believed(p.Profile),
		rates:  capacity.Rates(r, cmp.Or(p.Options.Headroom, defaultHeadroom)),
		groups: capacity.UsableWorkers(r.Spec, down), price: capacity.Prices(r),
	}
	x.items = capacity.ItemRates(r, x.rates)
	sizes := p.Options.Batches
	if sizes == nil {
		sizes = capacity.PowersOfTwo
	}
	x.offers = capacity.Offers(r, x.believed, x.groups, broken, sizes, pathPart)
	if p.Options.MostAccurate {
		x.keepMostAccurate()
	}
	for a := range r.Spec.Apps {
		if r.Spec.Apps[a].Closed {
			continue
		}
		pl := pipe{app: serving.AppID(a)}
		for _, ways := range x.ways(r.Spec.Source(pl.app)) {
			pl.branches = append(pl.branches, branch{stages: ways})
		}
		if err := x.findPaths(&pl, r, broken); err != nil {
			return nil, err
		}
		x.pipelines = append(x.pipelines, pl)
	}
	return x, x.trees()
}

// trees refuses pipelines whose branches join.
func (x *request) trees() error {
	for s := range x.spec.Stages {
		st := &x.spec.Stages[s]
		if st.Joins > 1 && !x.spec.Apps[st.App].Closed {
			return fmt.Errorf("app %q: %d edges lead to stage %q: planner loki plans trees; use planner ipa or scrooge",
				x.spec.Apps[st.App].Name, st.Joins, st.Name)
		}
	}
	return nil
}

// ways lists the ways from a stage to a last one.
func (x *request) ways(s serving.StageID) (out [][]serving.StageID) {
	if len(x.spec.Stages[s].Next) == 0 {
		return [][]serving.StageID{{s}}
	}
	for _, e := range x.spec.Stages[s].Next {
		for _, rest := range x.ways(e.To) {
			out = append(out, append([]serving.StageID{s}, rest...))
		}
	}
	return out
}

// bestOffered returns the accuracy of the most accurate variant of a stage that is offered.
func (x *request) bestOffered(s serving.StageID) (best float64) {
	for k := range x.offers {
		if x.offers[k].Stage == s {
			best = max(best, x.accuracy(k))
		}
	}
	return best
}

// accuracy returns that of an offer's variant.
func (x *request) accuracy(k int) float64 { return x.spec.Variants[x.offers[k].Variant].Accuracy }

// keepMostAccurate leaves only offers of the most accurate variants.
func (x *request) keepMostAccurate() {
	var kept []capacity.Offer
	for k := range x.offers {
		if x.mostAccurate(k) {
			kept = append(kept, x.offers[k])
		}
	}
	x.offers = kept
}

// mostAccurate reports whether an offer is of the most accurate variant of its stage that is offered.
func (x *request) mostAccurate(k int) bool { return x.accuracy(k) >= x.bestOffered(x.offers[k].Stage) }
