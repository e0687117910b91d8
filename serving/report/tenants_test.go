package report_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
)

// A report counts the queries of every tenant and their machine time. It leaves out queries of nobody where there are
// none, and says nothing of tenants where the run does not know any.
func TestTenants(t *testing.T) {
	r := report.NewRecorder([]report.AppInfo{{Name: "app"}}, report.Options{})
	add := func(tenant int32, o serving.Outcome, done serving.Time) {
		r.Add(&report.Outcome{Tenant: tenant, Outcome: o, Done: done, Deadline: 10, Items: 1})
	}
	for range 6 {
		add(1, serving.Served, 5)
	}
	add(1, serving.Served, 11)
	add(1, serving.Refused, 0)
	add(1, serving.Dropped, 10)
	add(1, serving.Failed, 3)
	add(1, serving.Cancelled, 3)
	add(3, serving.Served, 10)
	infos := []report.TenantInfo{{}, {"shop", 3 * time.Second}, {"idle", 0}, {"till", time.Second}}
	rep := r.Report(report.Meta{Name: "simulated", Duration: time.Second, Tenants: infos})
	share := func(f float64) *float64 { return &f }
	want := []report.Tenant{
		{
			Name: "shop", Offered: 11, Served: 7, InTime: 6, Late: 1, Dropped: 1, Refused: 1, Failed: 1, Cancelled: 1,
			ViolationRatio: 0.4, MachineS: 3, MachineShare: share(0.75),
		},
		{Name: "idle", MachineShare: share(0)},
		{Name: "till", Offered: 1, Served: 1, InTime: 1, MachineS: 1, MachineShare: share(0.25)},
	}
	got, _ := json.Marshal(rep.Tenants)
	if wanted, _ := json.Marshal(want); !bytes.Equal(got, wanted) {
		t.Errorf("tenants\n%s, want\n%s", got, wanted)
	}
	var text bytes.Buffer
	if err := rep.Table(&text); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"tenant  offered  in time  late  dropped  refused  failed  violations  machine time    share",
		"shop         11        6     1        1        1       1     40.00 %        3.00 s  75.00 %",
		"idle          0        0     0        0        0       0      0.00 %        0.00 s   0.00 %",
	} {
		if !strings.Contains(text.String(), line) {
			t.Errorf("no line %q in\n%s", line, text.String())
		}
	}

	add(0, serving.Served, 5)
	if rep = r.Report(report.Meta{Tenants: infos}); len(rep.Tenants) != 4 || rep.Tenants[0].Offered != 1 {
		t.Errorf("queries of nobody: %+v", rep.Tenants)
	}
	text.Reset()
	if err := report.SideBySide(&text, []string{"a", "b"}, []*report.Report{rep, rep}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"\na (none) ", "\nb shop "} {
		if !strings.Contains(text.String(), name) {
			t.Errorf("no row %q in\n%s", name, text.String())
		}
	}
	if rep = r.Report(report.Meta{}); rep.Tenants != nil {
		t.Errorf("a run without tenants has %+v", rep.Tenants)
	}
}
