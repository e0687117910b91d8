package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Spans are numbers of spans of traces. Those that have ended and are in neither of the others wait, or were dropped.
type Spans struct{ Ended, Delivered, Failed uint64 }

type spanCounts struct {
	read func() Spans
	desc *prometheus.Desc
}

// CountSpans adds the counts that read returns to the metrics. It may be called once.
func (t *Telemetry) CountSpans(read func() Spans) {
	t.registry.MustRegister(&spanCounts{read, prometheus.NewDesc("sluice_trace_spans_total",
		"Spans of traces that ended, were delivered to the collector, and could not be delivered.",
		[]string{"event"}, nil)})
}

// Describe implements prometheus.Collector.
func (c *spanCounts) Describe(out chan<- *prometheus.Desc) { out <- c.desc }

// Collect implements prometheus.Collector.
func (c *spanCounts) Collect(out chan<- prometheus.Metric) {
	n := c.read()
	for _, x := range []struct {
		event string
		n     uint64
	}{{"ended", n.Ended}, {"delivered", n.Delivered}, {"failed", n.Failed}} {
		out <- prometheus.MustNewConstMetric(c.desc, prometheus.CounterValue, float64(x.n), x.event)
	}
}
