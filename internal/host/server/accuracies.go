package server

import (
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/measure/telemetry"
	"github.com/sluice-serving/sluice/serving"
)

// showAccuracies puts the believed and the measured accuracies into the metrics.
func showAccuracies(p *host.Profiled, t *telemetry.Telemetry) {
	spec := p.Spec()
	show := func(v serving.VariantID, source string, value float64) {
		app := spec.Apps[spec.Stages[spec.Variants[v].Stage].App].Name
		t.ShowAccuracy(app, spec.Variants[v].Name, source, value)
	}
	for v := range spec.Variants {
		show(serving.VariantID(v), "believed", spec.Variants[v].Accuracy)
	}
	for _, j := range p.Judged() {
		show(j.Variant, "measured", j.Accuracy)
	}
}
