package engine

import (
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
)

// Ended returns the outcome that an EndQuery decision made at now reports to metrics, the same in simulated and live
// runs.
func (d *Decision) Ended(now serving.Time) report.Outcome {
	return report.Outcome{
		Query: d.Query, App: d.App, Variant: d.Variant, Outcome: d.Outcome, Arrived: d.Arrived, Done: now,
		Deadline: d.Deadline, Queue: d.Queue, Items: d.Brought, Batch: d.Items, Accuracy: d.Accuracy,
		Calibrated: d.Calibrated,
		Label:      report.LabelUnknown, Tenant: d.Tenant, Stage: d.Stage,
	}
}
