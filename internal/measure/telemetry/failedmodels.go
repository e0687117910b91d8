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
	read  func() []FailedModel
	limit int
	desc  *prometheus.Desc
}

// ShowFailedModels adds the models that read returns to the metrics. It may be called once.
func (t *Telemetry) ShowFailedModels(read func() []FailedModel) {
	t.registry.MustRegister(&failedModels{read, t.names.limit, prometheus.NewDesc("sluice_model_load_failed",
		"1 for each version of a model that is not served because it could not be loaded, by the kind of reason.",
		[]string{"model", "version", "reason"}, nil)})
}

// Describe implements prometheus.Collector.
func (f *failedModels) Describe(out chan<- *prometheus.Desc) { out <- f.desc }

// Collect implements prometheus.Collector.
func (f *failedModels) Collect(out chan<- prometheus.Metric) {
	seen, others := make(map[FailedModel]bool), make(map[string]int)
	for _, x := range f.read() {
		switch {
		case seen[x]: // a repeated one would spoil all metrics
		case len(seen) < f.limit:
			seen[x] = true
			out <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, 1, x.Model, x.Version, x.Kind)
		default:
			others[x.Kind]++
		}
	}
	for kind, n := range others {
		out <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, float64(n), Other, Other, kind)
	}
}
