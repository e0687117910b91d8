package report

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Tenant is what became of the queries of one tenant, and the machine time that they took.
type Tenant struct {
	Name      string `json:"name"` // empty for queries without a tenant
	Offered   int64  `json:"offered"`
	Served    int64  `json:"served"`
	InTime    int64  `json:"in_time"`
	Late      int64  `json:"late"`
	Dropped   int64  `json:"dropped"`
	Refused   int64  `json:"refused"`
	Failed    int64  `json:"failed"`
	Cancelled int64  `json:"cancelled"`
	// ViolationRatio is as in Summary.
	ViolationRatio float64 `json:"violation_ratio"`
	// MachineS is the time, in s, of the tenant's part of all batches by items, and MachineShare its share of all
	// tenants'; nil where no batch ran.
	MachineS     float64  `json:"machine_s"`
	MachineShare *float64 `json:"machine_share,omitempty"`
}

// TenantInfo is what a report needs to know of a tenant.
type TenantInfo struct {
	Name    string
	Machine time.Duration
}

// maxTenants bounds the tenants that are counted apart.
const maxTenants = 1 << 16

// ofTenant counts an outcome for its tenant.
func (r *Recorder) ofTenant(o *Outcome, late bool) {
	k := int(o.Tenant)
	if k < 0 || k >= maxTenants {
		return
	}
	if k >= len(r.tenants) {
		r.tenants = append(r.tenants, make([]tenantCounts, k+1-len(r.tenants))...)
	}
	r.tenants[k].outcomes[o.Outcome]++
	if late {
		r.tenants[k].late++
	}
}

// tenantCounts are queries of a tenant.
type tenantCounts struct {
	outcomes [serving.Outcomes]int64
	late     int64
}

// ofTenants makes the report's tenants from their table, by number. Queries without a tenant are left out where there
// are none.
func (r *Recorder) ofTenants(infos []TenantInfo) []Tenant {
	all := time.Duration(0)
	for _, x := range infos {
		all += x.Machine
	}
	var out []Tenant
	for k, x := range infos {
		var c tenantCounts
		if k < len(r.tenants) {
			c = r.tenants[k]
		}
		n := func(o serving.Outcome) int64 { return c.outcomes[o] }
		t := Tenant{
			Name: x.Name, Served: n(serving.Served), Late: c.late, InTime: n(serving.Served) - c.late,
			Dropped: n(serving.Dropped), Refused: n(serving.Refused), Failed: n(serving.Failed),
			Cancelled: n(serving.Cancelled), MachineS: x.Machine.Seconds(),
		}
		missed := t.Late + t.Dropped + t.Refused + t.Failed
		t.Offered = t.InTime + missed + t.Cancelled
		if t.Offered == 0 && k == 0 {
			continue
		}
		if judged := t.Offered - t.Cancelled; judged > 0 {
			t.ViolationRatio = float64(missed) / float64(judged)
		}
		if all > 0 {
			t.MachineShare = ptr(float64(x.Machine) / float64(all))
		}
		out = append(out, t)
	}
	return out
}

// tenantTable writes a row for every tenant of every report. It writes nothing where no report has tenants.
func tenantTable(w io.Writer, names []string, reports []*Report) error {
	rows := [][]string{
		{"tenant", "offered", "in time", "late", "dropped", "refused", "violations", "machine time", "share"}, nil,
	}
	failed := slices.ContainsFunc(reports, func(r *Report) bool {
		return slices.ContainsFunc(r.Tenants, func(t Tenant) bool { return t.Failed > 0 })
	})
	if failed {
		rows[0] = slices.Insert(rows[0], 6, "failed")
	}
	for k, r := range reports {
		for _, t := range r.Tenants {
			name := t.Name
			if name == "" {
				name = "(none)"
			}
			row := []string{strings.TrimSpace(names[k] + " " + name)}
			counts := []int64{t.Offered, t.InTime, t.Late, t.Dropped, t.Refused}
			if failed {
				counts = append(counts, t.Failed)
			}
			for _, n := range counts {
				row = append(row, format(Count, ptr(float64(n))))
			}
			rows = append(rows, append(row, format(Fraction, &t.ViolationRatio),
				significant(t.MachineS)+" s", format(Fraction, t.MachineShare)))
		}
	}
	if len(rows) == 2 {
		return nil
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return align(w, rows)
}
