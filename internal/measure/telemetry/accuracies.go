package telemetry

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// accuracies is a collector of what is known of the accuracy of variants, of apps that have series of their own:
// accuracies cannot be added up.
type accuracies struct {
	names *names
	desc  *prometheus.Desc

	mu    sync.Mutex
	known map[[3]string]float64 // by app, variant and source
}

func newAccuracies(r registry, n *names) *accuracies {
	a := &accuracies{names: n, known: make(map[[3]string]float64), desc: prometheus.NewDesc("sluice_variant_accuracy",
		"Accuracy of a variant: as plans believe it, as its profile measured it, and as shadow queries estimate it.",
		[]string{"app", "variant", "source"}, nil)}
	r.MustRegister(a)
	return a
}

// ShowAccuracy sets an accuracy of a variant; source says where it comes from: believed, measured or shadowed.
func (t *Telemetry) ShowAccuracy(app, variant, source string, value float64) {
	t.accuracies.mu.Lock()
	defer t.accuracies.mu.Unlock()
	t.accuracies.known[[3]string{app, variant, source}] = value
}

// Describe implements prometheus.Collector.
func (a *accuracies) Describe(out chan<- *prometheus.Desc) { out <- a.desc }

// Collect implements prometheus.Collector.
func (a *accuracies) Collect(out chan<- prometheus.Metric) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for of, value := range a.known {
		if a.names.has(of[0]) {
			out <- prometheus.MustNewConstMetric(a.desc, prometheus.GaugeValue, value, of[:]...)
		}
	}
}
