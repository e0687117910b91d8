package telemetry

import "github.com/prometheus/client_golang/prometheus"

// CountPages adds to the metrics how many pages of the dashboard read its stream, and how many events did not reach one
// because it was too slow. It may be called once.
func (t *Telemetry) CountPages(read func() (lost uint64, readers int)) {
	t.registry.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "sluice_dashboard_lost_events_total",
			Help: "Events that did not reach a page of the dashboard because it was too slow.",
		}, func() float64 { lost, _ := read(); return float64(lost) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "sluice_dashboard_readers", Help: "Pages of the dashboard that read its stream.",
		}, func() float64 { _, readers := read(); return float64(readers) }),
	)
}
