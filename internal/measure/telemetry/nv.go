package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
)

// nvMetrics are the series of one version of a model under Triton's names.
type nvMetrics struct {
	success, count, exec, request, queue, computed prometheus.Counter
}

func (m *metrics) nvMetrics(model, version string) nvMetrics {
	m.nvComputeInput.WithLabelValues(model, version)
	m.nvComputeOutput.WithLabelValues(model, version)
	return nvMetrics{
		success: m.nvSuccess.WithLabelValues(model, version), count: m.nvCount.WithLabelValues(model, version),
		exec: m.nvExec.WithLabelValues(model, version), request: m.nvRequest.WithLabelValues(model, version),
		queue: m.nvQueue.WithLabelValues(model, version), computed: m.nvComputed.WithLabelValues(model, version),
	}
}

// member counts the queries of a batch that has ended as requests of its model, where that is a step of an app. Other
// models' are counted when they are answered.
func (m *metrics) member(b *steps.Batch) {
	if app := m.spec.Stages[m.spec.Variants[b.Variant].Stage].App; !m.spec.Apps[app].Composed() ||
		b.Result != engine.OK {
		return
	}
	nv := &m.variant(b.Variant).nv
	nv.success.Add(float64(len(b.Tasks)))
	nv.count.Add(float64(b.Items))
	nv.request.Add(float64(len(b.Tasks)) * float64(b.Took.Microseconds()))
}

// memberFailed counts a query of a composed app that was not served as one of the model where it was refused, waited
// or failed: of the variant that failed on it, or of the stage's last one. As in Triton the app counts its member's
// failure beside its own.
func (m *metrics) memberFailed(o *report.Outcome) {
	if !m.spec.Apps[o.App].Composed() || o.Stage == serving.None {
		return
	}
	v := o.Variant
	if v == serving.None {
		all := m.spec.Stages[o.Stage].Variants
		v = all[len(all)-1]
	}
	m.variant(v).nvFailure[o.Outcome].Inc()
	m.app(o.App).nvFailure[o.Outcome].Inc()
}
