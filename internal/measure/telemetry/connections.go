package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Connections is how many connections of a listener (http, grpc, admin) there were to which something happened:
// accepted, refused or closed, and which limit did that.
type Connections struct {
	Listener, Event, Reason string
	Count                   uint64
}

// connectionCounts collects them when metrics are read.
type connectionCounts struct {
	read func() []Connections
	desc *prometheus.Desc
}

// CountConnections adds the counts that read returns to the metrics. It may be called once.
func (t *Telemetry) CountConnections(read func() []Connections) {
	t.registry.MustRegister(&connectionCounts{read, prometheus.NewDesc("sluice_connections_total",
		"Connections of a listener, by what happened to them and the limit that did it.",
		[]string{"listener", "event", "reason"}, nil)})
}

// Describe implements prometheus.Collector.
func (c *connectionCounts) Describe(out chan<- *prometheus.Desc) { out <- c.desc }

// Collect implements prometheus.Collector.
func (c *connectionCounts) Collect(out chan<- prometheus.Metric) {
	for _, x := range c.read() {
		out <- prometheus.MustNewConstMetric(c.desc, prometheus.CounterValue, float64(x.Count), x.Listener, x.Event,
			x.Reason)
	}
}
