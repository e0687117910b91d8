package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Callers is what became of callers at the entry, before any query.
type Callers struct {
	Counts  []CallerCount
	Tenants []TenantLoad
	Times   []TenantTime
}

// CallerCount is how many calls of a tenant were admitted, or refused for a reason. Tenant is "" for callers without
// one. There are as many as the configuration has tenants, whatever callers show.
type CallerCount struct {
	Tenant, Reason string
	Count          uint64
}

// TenantLoad is what a tenant has under way, and what is left of its rate, where it has one (Limit is not 0).
type TenantLoad struct {
	Tenant           string
	Active           int64
	Limit, Remaining int
}

// TenantTime is the machine time that the queries of a tenant have taken of an app, in batches that have ended.
type TenantTime struct {
	App, Tenant string
	Used        time.Duration
}

// callerCounts collects them when metrics are read.
type callerCounts struct {
	names                           *names
	read                            func() Callers
	calls, active, left, most, used *prometheus.Desc
}

// CountCallers adds what read returns to the metrics. It may be called once.
func (t *Telemetry) CountCallers(read func() Callers) {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	t.registry.MustRegister(&callerCounts{
		names: t.names, read: read,
		calls: desc("sluice_access_total", "Calls at the entry: admitted queries, and refusals by reason.", "tenant",
			"reason"),
		active: desc("sluice_tenant_active", "Queries of a tenant that are under way.", "tenant"),
		left:   desc("sluice_tenant_quota_remaining", "Queries that a tenant may send at once now.", "tenant"),
		most:   desc("sluice_tenant_quota_limit", "Queries that a tenant may send at once at most.", "tenant"),
		used: desc("sluice_tenant_machine_seconds_total",
			"Time of a tenant's part of batches that have ended, by items.", "app", "tenant"),
	})
}

// Describe implements prometheus.Collector.
func (c *callerCounts) Describe(out chan<- *prometheus.Desc) {
	out <- c.calls
	out <- c.active
	out <- c.left
	out <- c.most
	out <- c.used
}

// Collect implements prometheus.Collector.
func (c *callerCounts) Collect(out chan<- prometheus.Metric) {
	x := c.read()
	for _, n := range x.Counts {
		out <- prometheus.MustNewConstMetric(c.calls, prometheus.CounterValue, float64(n.Count), n.Tenant, n.Reason)
	}
	used := make(map[[2]string]time.Duration) // by app and tenant
	for _, t := range x.Times {
		app := t.App
		if !c.names.has(app) {
			app = Other
		}
		if t.Used > 0 {
			used[[2]string{app, t.Tenant}] += t.Used
		}
	}
	for of, time := range used {
		out <- prometheus.MustNewConstMetric(c.used, prometheus.CounterValue, time.Seconds(), of[:]...)
	}
	for _, t := range x.Tenants {
		out <- prometheus.MustNewConstMetric(c.active, prometheus.GaugeValue, float64(t.Active), t.Tenant)
		if t.Limit > 0 {
			out <- prometheus.MustNewConstMetric(c.left, prometheus.GaugeValue, float64(t.Remaining), t.Tenant)
			out <- prometheus.MustNewConstMetric(c.most, prometheus.GaugeValue, float64(t.Limit), t.Tenant)
		}
	}
}
