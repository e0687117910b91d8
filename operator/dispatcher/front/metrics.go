package front

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count what becomes of queries.
type Metrics struct {
	queries *prometheus.CounterVec
	errors  *prometheus.CounterVec
	held    prometheus.Counter
	known   sync.Map // of way to prometheus.Counter: a look-up by labels costs more
}

// way is how a query got to its cell.
type way struct {
	cell     int
	protocol string
	how      string
}

// NewMetrics returns metrics that are registered in r, unless it is nil.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		queries: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sluice_dispatcher_queries_total",
			Help: "Requests about a model by cell, protocol and how they got to it: local (a client's, served by " +
				"this pod), passed (sent on to another pod) or received (sent on by another pod)."},
			[]string{"cell", "protocol", "how"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sluice_dispatcher_errors_total",
			Help: "Requests that no cell answered, by reason: unavailable (nobody served the cell for too long), " +
				"lost (the pod that had it died) or gone (the client went away)."}, []string{"reason"}),
		held: prometheus.NewCounter(prometheus.CounterOpts{Name: "sluice_dispatcher_held_total",
			Help: "Requests that waited for their cell to be served."}),
	}
	if r != nil {
		r.MustRegister(m.queries, m.errors, m.held)
	}
	return m
}

func (m *Metrics) count(w way) {
	c, ok := m.known.Load(w)
	if !ok {
		c = m.queries.WithLabelValues(strconv.Itoa(w.cell), w.protocol, w.how)
		m.known.Store(w, c)
	}
	c.(prometheus.Counter).Inc()
}

func (m *Metrics) local(cell int, protocol string, passed bool) {
	how := "local"
	if passed {
		how = "received"
	}
	m.count(way{cell, protocol, how})
}

func (m *Metrics) passed(cell int, protocol string) { m.count(way{cell, protocol, "passed"}) }

func (m *Metrics) failed(reason string) { m.errors.WithLabelValues(reason).Inc() }
