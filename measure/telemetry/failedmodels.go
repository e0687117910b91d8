package telemetry

import "github.com/prometheus/client_golang/prometheus"

// FailedModel is a model that is not served, since it could not be loaded.
type FailedModel struct {
	Model, Version string
	// Kind is the kind of reason: "definition", its files or its configuration cannot be used; "runtime", it does not
	// load or run; "placement", no plan has room for it.
	Kind string
}

// failedModels is a collector of them.
type failedModels struct {
	read func() []FailedModel
	desc *prometheus.Desc
}

// ShowFailedModels adds the models that read returns to the metrics. It may be called once.
func (t *Telemetry) ShowFailedModels(read func() []FailedModel) {
	t.registry.MustRegister(&failedModels{read, prometheus.NewDesc("sluice_model_load_failed",
		"1 for each version of a model that is not served because it could not be loaded, by the kind of reason.",
		[]string{"model", "version", "reason"}, nil)})
}

// Describe implements prometheus.Collector.
func (f *failedModels) Describe(out chan<- *prometheus.Desc) { out <- f.desc }

// Collect implements prometheus.Collector.
func (f *failedModels) Collect(out chan<- prometheus.Metric) {
	seen := make(map[FailedModel]bool)
	for _, x := range f.read() {
		if seen[x] {
			continue // a repeated one would spoil all metrics
		}
		seen[x] = true
		out <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, 1, x.Model, x.Version, x.Kind)
	}
}
