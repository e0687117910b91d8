package simtest

import (
	"context"
	"math"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// Rated plans as many equal instances for every app as its rate needs, on the first free workers. A rate of 0 needs
// none.
type Rated struct {
	Limit        int // of batches
	Low, Up      float64
	BatchTimeout time.Duration
}

// Name implements plan.Planner.
func (*Rated) Name() string { return "rated" }

// Provides implements plan.Planner.
func (*Rated) Provides() plan.Sections {
	return plan.Shares | plan.Limits | plan.BatchTimeouts | plan.Bands
}

// Plan implements plan.Planner.
func (p *Rated) Plan(_ context.Context, r plan.Request) (*plan.Plan, error) {
	out := &plan.Plan{Planner: p.Name(), Demand: r.Rates}
	if r.Snapshot != nil {
		out.Snapshot = r.Snapshot.Seq
	}
	w := 0
	for a := range r.Spec.Apps {
		rate := 0.0
		if a < len(r.Rates) {
			rate = r.Rates[a]
		}
		n := int(math.Ceil(rate / p.Up))
		for _, s := range r.Spec.Apps[a].Stages {
			for k := 0; k < n && w < len(r.Spec.Workers); k, w = k+1, w+1 {
				out.Instances = append(out.Instances, plan.Instance{
					Worker: serving.WorkerID(w), Stage: s, Slots: 1, Share: 1 / float64(n),
					BatchTimeout: p.BatchTimeout, Low: p.Low, Up: p.Up,
					Variants: []plan.Variant{{Variant: r.Spec.Stages[s].Variants[0], Limit: p.Limit}},
				})
			}
		}
	}
	return out, out.Validate(r.Spec)
}
