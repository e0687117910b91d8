package cli

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/host/planning"
)

var rankingFile = filepath.Join("..", "..", "examples", "ranking.yaml")

func budget(t *testing.T, args ...string) planning.Rent {
	t.Helper()
	code, out, errs := sluice(t, append([]string{"plan", "-f", rankingFile, "--queries", "1000", "--json"}, args...)...)
	if code != ExitOK {
		t.Fatalf("sluice plan %s: %d %s", strings.Join(args, " "), code, errs)
	}
	var r planning.Rent
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// The published bound of the pool that the published formula ranks first, for the model, prices, budget and sizes
// published: 144.2 queries/s of 1 g4dn.xlarge and 13 r5n.large. No pool is expected to pass the linear program.
func TestPlanBudget(t *testing.T) {
	r := budget(t, "--budget", "2.5", "--runners-up", "2")
	v := r.Budgets[0]
	if r.Variant != "rm2" || r.SLOMS != 350 || len(r.Budgets) != 1 || len(v.RunnersUp) != 2 || v.Chosen == nil ||
		v.Homogeneous == nil {
		t.Fatalf("%+v", r)
	}
	if m := v.Chosen.Machines; m["g4dn.xlarge"] != 1 || m["r5n.large"] != 13 || len(m) != 2 ||
		math.Abs(v.Chosen.Upper/144.2-1) > 0.01 {
		t.Errorf("chosen %v with a bound of %.1f, published 1 and 13 with 144.2", m, v.Chosen.Upper)
	}
	for _, p := range append(v.RunnersUp, *v.Chosen, *v.Homogeneous) {
		if !(*p.Low <= *p.Expected && *p.Expected <= *p.High && *p.Low <= p.Fluid) || *p.Expected > p.Fluid ||
			p.CostPerHour > 2.5 {
			t.Errorf("%v for %.2f $/h: %.1f queries/s, between %.1f and %.1f, bounds %.1f and %.1f", p.Machines,
				p.CostPerHour, *p.Expected, *p.Low, *p.High, p.Upper, p.Fluid)
		}
		if p.AtMost == nil || *p.AtMost < *p.Low || *p.AtMost > *v.AtMost*1.002 {
			t.Errorf("%v: at most %v of %v with any machines, expected %v", p.Machines, p.AtMost, *v.AtMost,
				*p.Expected)
		}
		if each := p.CostPerHour / 3600 / *p.Expected * 1e6; math.Abs(each / *p.PerMillion - 1) > 1e-9 {
			t.Errorf("%v: %v $ per million queries, want %v", p.Machines, *p.PerMillion, each)
		}
	}
	if h := v.Homogeneous; h.Machines["g4dn.xlarge"] != 4 || math.Abs(*v.Scaled/(*h.Expected*2.5/2.104)-1) > 1e-9 {
		t.Errorf("of one type %v, scaled %v", h, *v.Scaled)
	}
}

// With a demand the cheapest pool is named, and one of a single type costs more; with a search the best one, which no
// runner-up passes.
func TestPlanBudgetTries(t *testing.T) {
	v := budget(t, "--budget", "2.5", "--demand", "40", "--runners-up", "0").Budgets[0]
	if v.Chosen == nil || v.Tried == 0 || v.Chosen.CostPerHour >= v.Homogeneous.CostPerHour || *v.Chosen.High < 40 ||
		v.AtMost != nil || !(*v.AtLeast > 0 && *v.AtLeast < v.Chosen.CostPerHour) || *v.Chosen.AtMost < 40 {
		t.Errorf("%+v, of one type %+v", v.Chosen, v.Homogeneous)
	}
	v = budget(t, "--budget", "1.2", "--search", "--runners-up", "3").Budgets[0]
	for _, p := range append(v.RunnersUp, *v.Homogeneous) {
		if *p.Low > *v.Chosen.High {
			t.Errorf("%v is known to carry %.1f queries/s, the best, %v, at most %.1f", p.Machines, *p.Low,
				v.Chosen.Machines, *v.Chosen.High)
		}
	}
	if v.Tried >= v.Pools/2 {
		t.Errorf("%d of %d pools tried", v.Tried, v.Pools)
	}
}

func TestPlanBudgetFrontier(t *testing.T) {
	dir := t.TempDir()
	code, out, errs := sluice(t, "plan", "-f", rankingFile, "--budget", "2", "--frontier", "--points", "4", "--bound",
		"fluid", "--queries", "500", "--runners-up", "0", "--out", dir)
	if code != ExitOK || !strings.Contains(out, "BUDGET") ||
		!strings.Contains(out, "AT MOST") || !strings.Contains(out, "ANY FOR IT") ||
		strings.Count(out, "g4dn.xlarge") != 3 {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	// Half a dollar buys no machine for the largest queries: the row says so.
	if !strings.Contains(out, "0.50  none") {
		t.Errorf("%s", out)
	}
	for _, f := range []string{"plan.json", "budget.png", "budget.svg"} {
		if s, err := os.Stat(filepath.Join(dir, f)); err != nil || s.Size() < 500 {
			t.Errorf("%s: %v", f, err)
		}
	}
}

func TestPlanBudgetRefuses(t *testing.T) {
	for _, c := range []struct {
		file string
		args []string
		code int
		says string
	}{
		{rankingFile, []string{"--budget", "x"}, ExitUsage, "--budget x"},
		{rankingFile, []string{"--budget", "0"}, ExitUsage, "above 0"},
		{rankingFile, []string{"--budget", "2", "--compare", "fcfs,clkwrk"}, ExitUsage, "--compare"},
		{rankingFile, []string{"--budget", "2", "--bound", "high"}, ExitUsage, "--bound"},
		{rankingFile, []string{"--budget", "2", "--queries", "1"}, ExitUsage, "--queries"},
		{rankingFile, []string{"--budget", "1..2", "--demand", "10"}, ExitUsage, "--demand"},
		{rankingFile, []string{"--budget", "2", "--app", "other"}, ExitUsage, `"other"`},
		{fleetFile, []string{"--budget", "2"}, ExitUsage, "--app"},
		{rankingFile, []string{"--budget", "0.2", "--bounds-only"}, ExitShortOf, "serves queries of every size"},
		{
			rankingFile, []string{"--budget", "1", "--demand", "500"}, ExitShortOf,
			"no pool of at most 1.00 $/h carries 500 /s",
		},
		{rankingFile, []string{"--budget", "1e9", "--bounds-only"}, ExitOK, ""}, // what can be had bounds it
	} {
		code, _, errs := sluice(t, append([]string{"plan", "-f", c.file}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("sluice plan %s: status %d, %s; want %d and %q", strings.Join(c.args, " "), code, errs, c.code,
				c.says)
		}
	}
}
