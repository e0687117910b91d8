package engine

import (
	"github.com/sluice-serving/sluice/measure/report"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// PlanRequest returns the request to a planner that a RequestPlan decision stands for. It shares slices and pointers
// with the decision, which the engine does not change afterwards. So a planner may work while the engine takes further
// steps.
func (d *Decision) PlanRequest() plan.Request {
	spec := d.Spec
	if d.Fans != nil {
		spec = spec.WithFanOuts(d.Fans)
	}
	return plan.Request{
		Spec: spec, Snapshot: d.Snapshot, Rates: d.Rates, Dispersions: d.Dispersions, Recent: d.Recent, Mixes: d.Mixes,
		Beliefs: d.Beliefs, Prices: d.Prices,
	}
}

// Ended returns the outcome that an EndQuery decision made at now reports to metrics, the same in simulated and live
// runs.
func (d *Decision) Ended(now serving.Time) report.Outcome {
	return report.Outcome{
		Query: d.Query, App: d.App, Variant: d.Variant, Outcome: d.Outcome, Arrived: d.Arrived, Done: now,
		Deadline: d.Deadline, Queue: d.Queue, Items: d.Brought, Batch: d.Items, Accuracy: d.Accuracy,
		Label: report.LabelUnknown, Tenant: d.Tenant, Stage: d.Stage,
	}
}
