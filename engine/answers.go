package engine

import (
	"github.com/sluice-serving/sluice/measure/report"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// PlanRequest returns the question to a planner that a RequestPlan decision stands for. What it refers to is shared and
// not changed, so that a planner may answer while the engine steps on.
func (d *Decision) PlanRequest() plan.Request {
	spec := d.Spec
	if d.Fans != nil {
		spec = spec.WithFanOuts(d.Fans)
	}
	return plan.Request{
		Spec: spec, Snapshot: d.Snapshot, Rates: d.Rates, Dispersions: d.Dispersions, Mixes: d.Mixes,
		Beliefs: d.Beliefs, Prices: d.Prices,
	}
}

// Ended returns what an EndQuery decision made at now means to the metrics: the same for a simulated and a live run.
func (d *Decision) Ended(now serving.Time) report.Outcome {
	return report.Outcome{
		Query: d.Query, App: d.App, Variant: d.Variant, Outcome: d.Outcome, Arrived: d.Arrived, Done: now,
		Deadline: d.Deadline, Queue: d.Queue, Items: d.Brought, Batch: d.Items, Accuracy: d.Accuracy,
		Label: report.LabelUnknown,
	}
}
