package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/host/planning"
)

// pipelineFile is the example that ships: the worked example of Scrooge (SoCC 2021, §3.3).
const pipelineFile = "../../examples/pipeline/sluice.yaml"

// The plan of a graph says each stage's part of the objective, what is used of machines and what is rented, and how
// good that is; it adds up.
func TestPlanOfPipeline(t *testing.T) {
	v := askPlan(t, ExitOK, "-f", pipelineFile).Plans[0]
	if v.CostPerHour != 8 || v.Bound == nil || *v.Bound != 8 || v.Goal != planning.GoalCost || v.Accuracy == nil ||
		*v.Accuracy != 1 {
		t.Errorf("%+v", v)
	}
	budget, used := 0.0, 0.0
	for _, s := range v.Stages {
		budget += s.BudgetMS
		used += s.CostPerHour
	}
	if len(v.Stages) != 2 || budget > 300 || v.Stages[1].Rate != 320 || v.CostUsed == nil || !near(used, *v.CostUsed) ||
		used < 7.46 || used > 8 {
		t.Errorf("%+v, %v used", v.Stages, v.CostUsed)
	}
	parts := make(map[string]float64)
	for _, i := range v.Instances {
		if parts[i.Worker] += i.Part; !near(i.Part, i.Rate/i.Capacity) || parts[i.Worker] > 1+1e-9 {
			t.Errorf("%+v uses %v of %s", i, parts[i.Worker], i.Worker)
		}
	}
	code, out, errs := sluice(t, "plan", "-f", pipelineFile)
	for _, want := range []string{
		"BUDGET", "MACHINES", "8.00 $/h, which is reached: no plan rents less",
		"3 of 20 in use, 8.00 $/h rented and 7.54 $/h used", "with its worker to itself",
	} {
		if code != ExitOK || !strings.Contains(out, want) {
			t.Errorf("%d %s does not say %q:\n%s", code, errs, want, out)
		}
	}
	_, out, _ = sluice(t, "plan", "-f", pipelineFile, "--compare", "scrooge,nexus")
	for _, want := range []string{"USED", "BOUND", "nexus"} {
		if !strings.Contains(out, want) {
			t.Errorf("the comparison does not say %q:\n%s", want, out)
		}
	}
}

// Demand for which there are too few machines is shed, and the missing machines are listed by type.
func TestPlanShortOfMachines(t *testing.T) {
	v := askPlan(t, ExitShortOf, "-f", pipelineFile, "--demand", "2000").Plans[0]
	if v.Short["X"]+v.Short["Y"] == 0 || v.Diagnosis != nil || v.Served < 400 || v.Served > 700 {
		t.Errorf("serves %v, short of %v, diagnosis %v", v.Served, v.Short, v.Diagnosis)
	}
	if _, out, _ := sluice(t, "plan", "-f", pipelineFile, "--demand", "2000"); !strings.Contains(out,
		"more would carry all of it") {
		t.Errorf("%s", out)
	}
}

// The default system's plan of a graph that falls short has mends: carried out, all is carried. A budget is one of them
// where machines are rented.
func TestPlanMendsGraphs(t *testing.T) {
	demand := []string{"-f", pipelineFile, "--system", "sluice", "--demand", "640"}
	v := askPlan(t, ExitShortOf, demand...).Plans[0]
	if v.Adviser != "" || v.Diagnosis == nil || len(v.Diagnosis.Bottlenecks) != 2 || len(v.Diagnosis.Remedies) < 4 {
		t.Fatalf("%+v", v.Diagnosis)
	}
	for _, m := range v.Diagnosis.Remedies {
		if m.Kind != "workers" {
			continue
		}
		var add []string
		for name, n := range m.Add {
			add = append(add, fmt.Sprintf("+%d %s", n, name))
		}
		with := askPlan(t, ExitOK, append(demand, "--what-if", strings.Join(add, ","))...).Plans[1]
		if with.Shed > 0 {
			t.Errorf("with %v %v is shed", add, with.Shed)
		}
	}
	text, err := os.ReadFile(pipelineFile)
	if err != nil {
		t.Fatal(err)
	}
	profile, err := filepath.Abs(filepath.Join(filepath.Dir(pipelineFile), "profile.json"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	rented := strings.NewReplacer("_hour: 2}", "_hour: 2, tenure: rented}", "_hour: 3}", "_hour: 3, tenure: rented}",
		"[profile.json]", "["+profile+"]", `{name: scrooge, options: {within: "1", headroom: "1"}}`,
		"{name: sluice, budget: 5}").Replace(string(text))
	if err := os.WriteFile(file, []byte(rented), 0o644); err != nil {
		t.Fatal(err)
	}
	d := askPlan(t, ExitShortOf, "-f", file).Plans[0].Diagnosis
	if d == nil || len(d.Limits) != 1 || d.Limits[0].Kind != "budget" || len(d.Remedies) == 0 ||
		d.Remedies[0].Kind != "budget" {
		t.Fatalf("%+v", d)
	}
	paid := strings.Replace(rented, "budget: 5", fmt.Sprintf("budget: %v", *d.Remedies[0].Budget), 1)
	if err := os.WriteFile(file, []byte(paid), 0o644); err != nil {
		t.Fatal(err)
	}
	if v := askPlan(t, ExitOK, "-f", file).Plans[0]; v.Shed > 0 {
		t.Errorf("with %v $/h %v is shed", *d.Remedies[0].Budget, v.Shed)
	}
	_, out, _ := sluice(t, "plan", "-f", pipelineFile, "--system", "sluice", "--demand", "640")
	for _, want := range []string{"example, stage B: without it", "Any one of these would mend it", "add 13 X"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not said:\n%s", want, out)
		}
	}
}

// The plan of the default system forecasts what was simulated, with its spread, and lists the trials.
func TestPlanShowsTrials(t *testing.T) {
	v := askPlan(t, ExitOK, "-f", pipelineFile, "--system", "sluice").Plans[0]
	if v.Forecast == nil || v.Forecast.Queries < 1000 || v.Forecast.Accuracy != 1 || v.Choice == "" ||
		len(v.Trials) != 1 || v.Apps[0].Violation == nil {
		t.Fatalf("%+v", v)
	}
	if x := v.Trials[0]; !x.Adopted || x.Violation != v.Forecast.Violation || x.Deviation != v.Forecast.Deviation ||
		x.Machines["X"] != 10 || x.CostPerHour != v.CostPerHour || x.Loads != v.Loads {
		t.Errorf("%+v", x)
	}
	_, out, _ := sluice(t, "plan", "-f", pipelineFile, "--system", "sluice")
	for _, want := range []string{"forecast ", "simulated with", "choice ", "TRIED", "filled afresh", "LATE"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not said:\n%s", want, out)
		}
	}
}

// The example runs in the simulator with the head-room that its README names: of frames at a constant rate, on machines
// that are shared, hardly any are late.
func TestPipelineExample(t *testing.T) {
	if code, out, errs := sluice(t, "config", "check", pipelineFile); code != ExitOK {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	text, err := os.ReadFile(pipelineFile)
	if err != nil {
		t.Fatal(err)
	}
	profile, err := filepath.Abs(filepath.Join(filepath.Dir(pipelineFile), "profile.json"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	withHeadroom := strings.NewReplacer(`headroom: "1"`, `headroom: "1.25"`, "[profile.json]",
		"["+profile+"]").Replace(string(text))
	if err := os.WriteFile(file, []byte(withHeadroom), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, errs := sluice(t, "simulate", "-f", file, "--request-rate-range", "80", "--request-distribution",
		"uniform", "--duration", "60s", "--json")
	var reports []struct {
		Overall struct {
			Offered, Served int64
			Violation       float64 `json:"violation_ratio"`
		}
	}
	if err := json.Unmarshal([]byte(out), &reports); err != nil || code != ExitOK || len(reports) != 1 ||
		reports[0].Overall.Served < 4500 || reports[0].Overall.Violation > 0.005 {
		t.Errorf("%d %v %s%s", code, err, out, errs)
	}
}
