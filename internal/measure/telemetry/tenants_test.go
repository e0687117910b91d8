package telemetry_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/internal/measure/telemetry"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
)

// Metrics count the queries of tenants and what became of callers, and an explanation says whose query it was.
func TestTenantsInMetrics(t *testing.T) {
	c := simtest.Uniform(1, time.Millisecond, time.Millisecond, time.Second, 4)
	c.Spec.Tenants = []serving.Tenant{{Name: "shop", Weight: 1}}
	log := steps.New(c.Spec, steps.Options{})
	told := telemetry.New(c.Spec, log, telemetry.Options{})
	told.CountCallers(func() telemetry.Callers {
		return telemetry.Callers{
			Counts:  []telemetry.CallerCount{{Tenant: "shop", Reason: "rate", Count: 7}},
			Times:   []telemetry.TenantTime{{App: "app", Tenant: "shop", Used: 1500 * time.Millisecond}},
			Tenants: []telemetry.TenantLoad{{Tenant: "shop", Active: 2, Limit: 10, Remaining: 3}, {Tenant: "free"}},
		}
	})
	q := serving.Query{ID: 1, Arrived: 1, Deadline: 1e9, Items: 1, Variant: serving.None, Tenant: 1}
	log.Observe(1, []engine.Input{engine.NewQueryArrived(q)}, nil)
	told.Outcome(report.Outcome{Query: 1, Tenant: 1, Outcome: serving.Dropped, Items: 1, Deadline: 1e9, Done: 2})
	w := httptest.NewRecorder()
	told.Metrics().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`sluice_tenant_queries_total{app="app",outcome="dropped",tenant="shop"} 1`,
		`sluice_tenant_machine_seconds_total{app="app",tenant="shop"} 1.5`,
		`sluice_access_total{reason="rate",tenant="shop"} 7`, `sluice_tenant_active{tenant="free"} 0`,
		`sluice_tenant_quota_remaining{tenant="shop"} 3`, `sluice_tenant_quota_limit{tenant="shop"} 10`,
	} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	w = httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/debug/explain?query=1", nil)
	r.Header.Set("Accept", "text/plain")
	log.Explanations().ServeHTTP(w, r)
	if !strings.Contains(w.Body.String(), "of tenant shop") {
		t.Errorf("explained as %s", w.Body)
	}
}
