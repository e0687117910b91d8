package cli

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/host/planning"
	"github.com/sluice-serving/sluice/internal/longtest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// fleetFile is the example that ships: six cpu, two gpu-small and one gpu-large for the apps images and text.
const fleetFile = "../../examples/fleet.yaml"

// askPlan runs 'sluice plan' and reads its JSON.
func askPlan(t *testing.T, want int, args ...string) planning.Report {
	t.Helper()
	code, out, errs := sluice(t, append([]string{"plan", "--json"}, args...)...)
	if code != want {
		t.Fatalf("sluice plan %s: status %d, want %d: %s", strings.Join(args, " "), code, want, errs)
	}
	var r planning.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return r
}

// near compares what two ways of computing agree on.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(math.Abs(a), math.Abs(b), 1) }

// The numbers of a plan add up: shares to one, instances to apps, apps to the whole, and no instance exceeds its
// capacity.
func TestPlanAddsUp(t *testing.T) {
	for _, system := range []string{
		"proteus", "clipper-ht", "infaas-accuracy", "sluice", "proteus-without-query-assignment",
	} {
		for _, scale := range []string{"1", "40"} {
			r := askPlan(t, ExitOK, "-f", fleetFile, "--system", system, "--scale", scale, "--what-if", "+1 cpu")
			for _, v := range r.Plans {
				at := fmt.Sprintf("%s, %s, %q", system, scale, v.WhatIf)
				shares, rates := make(map[string]float64), make(map[string]float64)
				busy := make(map[string]bool)
				for _, i := range v.Instances {
					shares[i.App] += i.Share
					rates[i.App] += i.Rate
					busy[i.Worker] = true
					if i.Rate > i.Capacity*(1+1e-6) {
						t.Errorf("%s: %s is to do %v, it can %v", at, i.Worker, i.Rate, i.Capacity)
					}
				}
				var demand, served, shed, right float64
				for _, a := range v.Apps {
					if !near(shares[a.Name], 1) || !near(rates[a.Name], a.Served) || !near(a.Served+a.Shed, a.Demand) ||
						a.Served > a.Capacity*(1+1e-6) {
						t.Errorf("%s: shares are %v and rates %v of %+v", at, shares[a.Name], rates[a.Name], a)
					}
					demand, served, shed = demand+a.Demand, served+a.Served, shed+a.Shed
					if a.Accuracy != nil {
						right += a.Served * *a.Accuracy
					}
				}
				if !near(demand, v.Demand) || !near(served, v.Served) || !near(shed, v.Shed) ||
					!near(right/served, *v.Accuracy) {
					t.Errorf("%s: apps make %v, %v, %v, %v of %+v", at, demand, served, shed, right/served, v)
				}
				if len(busy)+len(v.Idle) != v.Workers || v.Workers != 9+len(v.WhatIf)/6 {
					t.Errorf("%s: %d workers busy and %d idle of %d", at, len(busy), len(v.Idle), v.Workers)
				}
				if v.Gap != nil && (*v.Gap < 0 || *v.Gap > 0.01) {
					t.Errorf("%s: gap is %v", at, *v.Gap)
				}
			}
		}
	}
}

func TestPlanTable(t *testing.T) {
	code, out, errs := sluice(t, "plan", "-f", fleetFile, "--system", "proteus")
	if code != ExitOK || errs != "" {
		t.Fatalf("%d %s", code, errs)
	}
	for _, want := range []string{
		"system proteus, planner proteus, demand 310 /s", "DEVICE", "cpu-0..5", "gpu-large", "BATCH",
		"accuracy  84.29 %", "bound     1.0000 for the apps' mean accuracy",
		"9 of 9 in use, 3.29 $/h, 9 variants to load", "room", "head-room",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the table does not say %q:\n%s", want, out)
		}
	}
	if code, out, _ := sluice(t, "plan", "-f", fakeWorld(t)); code != ExitOK ||
		!strings.Contains(out, "no demand given") || !strings.Contains(out, "big (+1)") {
		t.Errorf("an idle start: %d %s", code, out)
	}
}

// The JSON keeps its shape and its numbers.
func TestPlanGolden(t *testing.T) {
	for name, args := range map[string][]string{
		"plan":       {"-f", fleetFile, "--system", "proteus"},
		"plan-mends": {"-f", fleetFile, "--system", "proteus", "--demand", "images=6500", "--demand", "text=1500"},
		"plan-pipeline": {
			"-f", pipelineFile, "--compare", "scrooge,scrooge-written,scrooge-greedy,scrooge-single,nexus",
		},
	} {
		path := filepath.Join("testdata", name+".json")
		_, out, errs := sluice(t, append([]string{"plan", "--json"}, args...)...)
		if *update {
			if err := os.WriteFile(path, []byte(out), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if json.Unmarshal([]byte(out), &a) != nil || json.Unmarshal(want, &b) != nil {
			t.Fatalf("not JSON: %s %s", out, errs)
		}
		if at := differ(a, b); at != "" {
			t.Errorf("%s differs at %s (go test ./internal/cli -run Golden -update writes it anew)", path, at)
		}
	}
}

// differ returns where two JSON values are not the same, up to the last digits of numbers; empty when they are.
func differ(a, b any) string {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return fmt.Sprintf(": %v, want %v", a, b)
		}
		for k := range x {
			if at := differ(x[k], y[k]); at != "" {
				return "." + k + at
			}
		}
		return ""
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return fmt.Sprintf(": %v, want %v", a, b)
		}
		for i := range x {
			if at := differ(x[i], y[i]); at != "" {
				return fmt.Sprintf("[%d]%s", i, at)
			}
		}
		return ""
	case float64:
		if y, ok := b.(float64); ok && near(x, y) {
			return ""
		}
		return fmt.Sprintf(": %v, want %v", a, b)
	}
	if a != b {
		return fmt.Sprintf(": %v, want %v", a, b)
	}
	return ""
}

func TestPlanRange(t *testing.T) {
	r := askPlan(t, ExitOK, "-f", fleetFile, "--demand", "images=100..400", "--demand", "text=50", "--scale", "1..2",
		"--points", "4")
	for i, want := range []float64{150, (200 + 50) * 4 / 3.0, (300 + 50) * 5 / 3.0, 900} {
		if len(r.Plans) != 4 || !near(r.Plans[i].Demand, want) || !near(r.Plans[i].Scale, 1+float64(i)/3) {
			t.Fatalf("plan %d: %+v, want a demand of %v", i, r.Plans[i], want)
		}
	}
	code, out, _ := sluice(t, "plan", "-f", fleetFile, "--scale", "0.5..2")
	if lines := strings.Count(out, " x  "); code != ExitOK || lines != defaultRange ||
		!strings.Contains(out, "0.50 x  155 /s") {
		t.Errorf("%d, %d lines: %s", code, lines, out)
	}
}

// For the same demand: the least accurate variants carry all of it, the most accurate do not, and proteus carries it
// all more accurately than the one and less than the other.
func TestPlanCompare(t *testing.T) {
	r := askPlan(t, ExitOK, "-f", fleetFile, "--scale", "3", "--compare",
		"proteus, clipper-ht,clipper-ha,sommelier,infaas-accuracy,weighted+adaptive")
	if len(r.Plans) != 6 {
		t.Fatalf("%d plans", len(r.Plans))
	}
	proteus, low, high, infaas := r.Plans[0], r.Plans[1], r.Plans[2], r.Plans[4]
	if proteus.Shed != 0 || low.Shed != 0 || !(high.Shed > 0) || infaas.Shed != 0 {
		t.Errorf("shed are %v, %v, %v, %v", proteus.Shed, low.Shed, high.Shed, infaas.Shed)
	}
	if !(*low.Accuracy < *proteus.Accuracy && *proteus.Accuracy < *high.Accuracy) ||
		*infaas.Accuracy > *proteus.Accuracy*1.005 {
		t.Errorf("accuracies are %v, %v, %v, %v", *low.Accuracy, *proteus.Accuracy, *high.Accuracy, *infaas.Accuracy)
	}
	if r.Plans[5].System != "weighted+adaptive" || r.Plans[5].Planner != "static" {
		t.Errorf("%+v", r.Plans[5])
	}
	// From what runs: workers that keep their app reach less far, and only what changes is loaded.
	r = askPlan(t, ExitOK, "-f", fleetFile, "--scale", "3", "--after", "1", "--compare", "proteus,sommelier")
	if a, b := r.Plans[0], r.Plans[1]; a.Loads == 0 || a.Loads >= 9 || b.Loads >= 9 || *b.Reach >= *a.Reach {
		t.Errorf("loads %d and %d, reach %v and %v", a.Loads, b.Loads, *a.Reach, *b.Reach)
	}
	if r := askPlan(t, ExitOK, "-f", fleetFile, "--after", "1"); r.Plans[0].Loads != 0 {
		t.Errorf("%d loads to get where one is", r.Plans[0].Loads)
	}
	code, out, _ := sluice(t, "plan", "-f", fleetFile, "--scale", "3", "--compare", "proteus,sluice", "--what-if",
		"-1 gpu-large")
	if code != ExitOK || strings.Count(out, "as it is") != 2 || !strings.Contains(out, "with its worker to itself") {
		t.Errorf("%d %s", code, out)
	}
}

// one writes a file with the app images alone.
func oneApp(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(fleetFile)
	if err != nil {
		t.Fatal(err)
	}
	profile, err := filepath.Abs("../../examples/fleet.profile.json")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "one.yaml")
	alone, _, _ := strings.Cut(strings.Replace(string(text), "fleet.profile.json]", profile+"]", 1), "  - name: text")
	if err := os.WriteFile(path, []byte(alone), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Accuracy never rises with throughput, every system ends where it carries no more, and the plot is there.
func TestPlanFrontier(t *testing.T) {
	file, dir := oneApp(t), t.TempDir()
	r := askPlan(t, ExitOK, "-f", file, "--frontier", "--compare", "proteus,clipper-ha,infaas-accuracy,sluice",
		"--points", "12", "--out", dir)
	if len(r.Frontiers) != 4 {
		t.Fatalf("%d frontiers", len(r.Frontiers))
	}
	for _, f := range r.Frontiers {
		if len(f.Points) != 12 {
			t.Fatalf("%s: %d points: %s", f.System, len(f.Points), f.Error)
		}
		for i, x := range f.Points {
			sum := 0.0
			for _, s := range x.Shares {
				sum += s
			}
			if !near(sum, 1) || !near(x.Apps[0], x.Accuracy) || !near(x.Throughput, x.Multiple*f.Demand) ||
				!near(x.Multiple*12, f.Points[11].Multiple*float64(i+1)) {
				t.Errorf("%s: %+v", f.System, x)
			}
			if x.Fluid == nil || x.Utility == nil || *x.Utility > x.Fluid.Utility*1.01 || x.Fluid.Utility > 1+1e-9 {
				t.Errorf("%s: utility %v, bound %+v", f.System, x.Utility, x.Fluid)
			}
			// Planners that search greedily promise nothing of the kind.
			greedy := f.System == "infaas-accuracy" || f.System == "sluice"
			if i > 0 && !greedy && x.Accuracy > f.Points[i-1].Accuracy+1e-9 {
				t.Errorf("%s: accuracy rises from %v to %v", f.System, f.Points[i-1].Accuracy, x.Accuracy)
			}
		}
	}
	best, high := r.Frontiers[0], r.Frontiers[1]
	if !(best.Points[0].Accuracy > best.Points[11].Accuracy) ||
		!(best.Points[11].Throughput > 2*high.Points[11].Throughput) ||
		best.Points[0].Accuracy > high.Points[11].Accuracy+1e-9 {
		t.Errorf("proteus: %+v, most accurate: %+v", best.Points, high.Points)
	}
	reach := *askPlan(t, ExitOK, "-f", file, "--system", "proteus").Plans[0].Reach
	if end := best.Points[11].Throughput; math.Abs(end-reach) > 0.002*reach {
		t.Errorf("the frontier ends at %v, the fleet reaches %v", end, reach)
	}
	for _, f := range []string{"plan.json", "frontier.png", "frontier.svg"} {
		if st, err := os.Stat(filepath.Join(dir, f)); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", f, err)
		}
	}
	code, out, _ := sluice(t, "plan", "-f", file, "--frontier", "--points", "3")
	if code != ExitOK || !strings.Contains(out, "THROUGHPUT") || !strings.Contains(out, "########") ||
		!strings.Contains(out, "AT MOST") {
		t.Errorf("%d %s", code, out)
	}
}

func TestPlanWhatIf(t *testing.T) {
	r := askPlan(t, ExitOK, "-f", fleetFile, "--system", "proteus", "--what-if", "+1 gpu-large, -2 cpu", "--what-if",
		"-1gpu-large", "--what-if", "-6 cpu,-2 gpu-small")
	want := []struct {
		name    string
		workers int
	}{{"", 9}, {"+1 gpu-large, -2 cpu", 8}, {"-1 gpu-large", 8}, {"-6 cpu, -2 gpu-small", 1}}
	for i, w := range want {
		if v := r.Plans[i]; v.WhatIf != w.name || v.Workers != w.workers {
			t.Errorf("plan %d is %q with %d workers, want %q with %d", i, v.WhatIf, v.Workers, w.name, w.workers)
		}
	}
	if !(*r.Plans[1].Reach > *r.Plans[0].Reach && *r.Plans[0].Reach > *r.Plans[2].Reach) {
		t.Errorf("reaches are %v, %v, %v", *r.Plans[1].Reach, *r.Plans[0].Reach, *r.Plans[2].Reach)
	}
	// A placement that a person wrote loses what lies on the workers that go.
	r = askPlan(t, ExitOK, "-f", fleetFile, "--system", "sluice", "--what-if", "-1 gpu-large")
	if a, b := r.Plans[0], r.Plans[1]; len(a.Instances) != 18 || len(b.Instances) != 16 ||
		slices.ContainsFunc(b.Instances, func(i planning.Instance) bool {
			return i.DeviceType == "gpu-large"
		}) {
		t.Errorf("%d and %d instances", len(a.Instances), len(b.Instances))
	}
}

// An overload is answered with changes that each mend it: carried out, all is carried, and with one worker less it is
// not.
func TestPlanMends(t *testing.T) {
	demand := []string{"-f", fleetFile, "--system", "proteus", "--demand", "images=6500", "--demand", "text=1500"}
	d := askPlan(t, ExitShortOf, demand...).Plans[0].Diagnosis
	if d == nil || d.Carried || d.Multiple >= 1 || len(d.Bottlenecks) == 0 {
		t.Fatalf("%+v", d)
	}
	kinds := make(map[string]int)
	for _, m := range d.Remedies {
		kinds[m.Kind]++
		if m.Kind != "workers" {
			continue
		}
		var add, less []string
		for name, n := range m.Add {
			add = append(add, fmt.Sprintf("+%d %s", n, name))
			if n > 1 {
				less = append(less, fmt.Sprintf("+%d %s", n-1, name))
			}
		}
		if v := askPlan(t, ExitOK, append(demand, "--what-if", strings.Join(add, ","))...).Plans[1]; v.Shed > 0 ||
			*v.Reach < v.Demand*0.999 {
			t.Errorf("with %v the plan sheds %v and reaches %v of %v", add, v.Shed, *v.Reach, v.Demand)
		}
		if len(m.Add) == 1 && len(less) == 1 {
			if v := askPlan(t, ExitOK, append(demand, "--what-if", less[0])...).Plans[1]; *v.Reach >= v.Demand {
				t.Errorf("%v is enough, too", less)
			}
		}
	}
	if kinds["workers"] < 3 || kinds["demand"] == 0 || kinds["accuracy_floor"] == 0 {
		t.Errorf("remedies are %+v", d.Remedies)
	}
	code, out, errs := sluice(t, append([]string{"plan"}, demand...)...)
	for _, want := range []string{
		"This demand cannot be carried", "What keeps it from being carried", "Any one of these would mend it",
		"gpu-large", "$/h more", "accuracy_floor of text 0.745 (now 0.8)",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not said:\n%s", want, out)
		}
	}
	if code != ExitShortOf || !strings.Contains(errs, "cannot be carried") {
		t.Errorf("%d %s", code, errs)
	}
	// A system whose planner makes no diagnosis gets that of one that does.
	v := askPlan(t, ExitShortOf, "-f", fleetFile, "--system", "triton-like", "--demand", "images=30000").Plans[0]
	if v.Adviser != "proteus" || v.Diagnosis == nil || v.Diagnosis.Carried {
		t.Errorf("%+v", v)
	}
	v = askPlan(t, ExitShortOf, "-f", fleetFile, "--system", "sluice", "--demand", "images=30000").Plans[0]
	if v.Adviser != "" || v.Diagnosis == nil || v.Diagnosis.Carried || len(v.Diagnosis.Remedies) == 0 {
		t.Errorf("%+v", v)
	}
	// For a system that may not use every variant, the mends say what it would gain.
	v = askPlan(t, ExitShortOf, "-f", fleetFile, "--system", "clipper-ha", "--scale", "3").Plans[0]
	if !slices.ContainsFunc(v.Diagnosis.Remedies, func(m planning.Remedy) bool { return m.Kind == "options" }) {
		t.Errorf("%+v", v.Diagnosis.Remedies)
	}
}

func TestPlanOfWhatNothingServes(t *testing.T) {
	text, err := os.ReadFile(oneApp(t))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "150ms", "4ms", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	v := askPlan(t, ExitShortOf, "-f", file, "--system", "proteus").Plans[0]
	d := v.Diagnosis
	if v.Error == "" || d == nil || len(d.Unserved) != 1 || d.Unserved[0].SLOMS == nil ||
		d.Unserved[0].Variant != "mobile" || d.Unserved[0].DeviceType != "gpu-large" {
		t.Fatalf("%+v", v)
	}
	slo := *d.Unserved[0].SLOMS
	if !(slo > 4 && slo < 5) || len(d.Remedies) == 0 || d.Remedies[0].Kind != "slo" {
		t.Errorf("%v, %+v", slo, d.Remedies)
	}
	code, out, _ := sluice(t, "plan", "-f", file, "--system", "proteus")
	if code != ExitShortOf || !strings.Contains(out, "nothing here serves it; it would take an SLO of 4.") {
		t.Errorf("%d %s", code, out)
	}
	if code, _, errs := sluice(t, "plan", "-f", file, "--system", "proteus", "--frontier"); code != ExitShortOf ||
		!strings.Contains(errs, "no frontier") {
		t.Errorf("%d %s", code, errs)
	}
	if code, out, _ := sluice(t, "plan", "-f", file, "--system", "proteus", "--what-if", "+1 cpu"); code != ExitOK ||
		strings.Count(out, "no plan: ") != 1 {
		t.Errorf("%d %s", code, out)
	}
}

func TestPlanUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--demand", "5"}, ExitUsage, "say for which app, as APP=RATE: there are images, text"},
		{[]string{"--demand", "sound=5"}, ExitUsage, `app "sound" is not in`},
		{[]string{"--demand", "text=-5"}, ExitUsage, "not a number from 0"},
		{[]string{"--demand", "text=5..6..7"}, ExitUsage, "FROM..TO"},
		{[]string{"--demand", "text=NaN"}, ExitUsage, "not a number"},
		{[]string{"--scale", "1.."}, ExitUsage, "--scale 1.."},
		{[]string{"--scale", "0..1", "--points", "1"}, ExitUsage, "at least 2"},
		{[]string{"--points", "100000"}, ExitUsage, "--points is 100000"},
		{[]string{"--scale", "0"}, ExitUsage, "no demand to scale"},
		{[]string{"--after", "-1"}, ExitUsage, "--after is -1"},
		{[]string{"--compare", "none"}, ExitUsage, "does not exist: use one of"},
		{
			[]string{"--what-if", "+1 tpu"}, ExitUsage,
			`device type "tpu" does not exist: use one of cpu, gpu-small, gpu-large`,
		},
		{[]string{"--what-if", "1 cpu"}, ExitUsage, "write +N or -N"},
		{[]string{"--what-if", ""}, ExitUsage, "write +N or -N"},
		{[]string{"--what-if", "-7 cpu"}, ExitUsage, "there are 6"},
		{[]string{"--what-if", "-6 cpu,-2 gpu-small,-1 gpu-large"}, ExitUsage, "no worker would be left"},
		{[]string{"--frontier", "--scale", "1..2"}, ExitUsage, "not a range"},
		{[]string{"--frontier", "--points", "1"}, ExitUsage, "at least 2"},
		{
			[]string{
				"--frontier", "--out", "x", "--compare", "proteus,clipper-ht,clipper-ha", "--what-if", "+1 cpu",
				"--what-if", "+2 cpu",
			}, ExitUsage, "do not fit into one plot",
		},
		{[]string{"more"}, ExitUsage, "not understood"},
		{[]string{"--profile", "nowhere.json"}, ExitConfig, "nowhere.json"},
	} {
		code, out, errs := sluice(t, append([]string{"plan", "-f", fleetFile}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.says) || out != "" {
			t.Errorf("sluice plan %s: status %d, %s%s; want %d and %q", strings.Join(c.args, " "), code, out, errs,
				c.code, c.says)
		}
	}
}

// The examples of the help and of the documents do what they say.
func TestPlanExamples(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	text, profile := read(fleetFile), read("../../examples/fleet.profile.json")
	ranking, rankingProfile := read(rankingFile), read("../../examples/ranking.profile.json")
	graph, graphProfile := read(pipelineFile), read("../../examples/pipeline/profile.json")
	lines := strings.Split(planCommand().examples, "\n")
	documented, shown := 0, map[string][]string{} // by command, lines of what it prints
	for _, doc := range []string{
		"../../docs/planning.md", "../../docs/pools.md", "../../docs/sizing.md", "../../README.md",
	} {
		command := ""
		for _, line := range strings.Split(read(doc), "\n") {
			line, _, _ := strings.Cut(strings.TrimPrefix(line, "$ "), "#")
			switch {
			case strings.HasPrefix(line, "sluice plan "):
				lines = append(lines, line)
				documented++
				command = line
			case strings.HasPrefix(line, "```") || strings.HasPrefix(line, "echo "):
				command = ""
			case command != "" && line != "" && line != "...":
				shown[command] = append(shown[command], line)
			}
		}
	}
	if len(shown) < 8 {
		t.Errorf("%d commands in the documents show what they print", len(shown))
	}
	if documented < 12 {
		t.Errorf("%d commands in the documents", documented)
	}
	t.Chdir(t.TempDir())
	renamed := strings.NewReplacer("name: images", "name: digits", "name: text", "name: scenes").Replace(text)
	if err := os.MkdirAll("examples/pipeline", 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{"sluice.yaml": renamed, "fleet.profile.json": profile,
		"examples/fleet.yaml": text, "examples/fleet.profile.json": profile,
		"examples/ranking.yaml": ranking, "examples/ranking.profile.json": rankingProfile, pipelineFile[6:]: graph,
		"examples/pipeline/profile.json": graphProfile} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range lines {
		var args []string
		for i, part := range strings.Split(line, "'") {
			if i%2 == 1 {
				args = append(args, part)
			} else {
				args = append(args, strings.Fields(part)...)
			}
		}
		if strings.Contains(line, "--budget") {
			args = append(args, "--queries", longtest.Of("100", "300"), "--runners-up", "1")
			if strings.Contains(line, "--frontier") {
				args = append(args, "--points", longtest.Of("2", "5"))
			}
		}
		want := ExitOK
		if strings.Contains(line, "images=6500") || strings.Contains(line, "--demand 640") {
			want = ExitShortOf
		}
		code, out, errs := sluice(t, args[1:]...)
		if code != want {
			t.Errorf("%s: %d %s", line, code, errs)
		}
		if strings.Contains(line, "--budget") {
			continue // simulated here with fewer queries than the documents say
		}
		rest := out
		for _, want := range shown[line] {
			_, after, found := strings.Cut(rest, want+"\n")
			if !found {
				t.Errorf("%s: the documents show %q, which is not printed there:\n%s", line, want, out)
				break
			}
			rest = after
		}
	}
}

func TestSpans(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"cpu-0", "cpu-1", "cpu-2"}, "cpu-0..2"},
		{[]string{"cpu-0", "cpu-2", "core"}, "cpu-0, cpu-2, core"},
		{[]string{"a", "b-9", "b-10", "c", "d"}, "a, b-9..10, c, ..."},
		{[]string{"gpu-x", "gpu-y"}, "gpu-x, gpu-y"},
		{nil, ""},
	} {
		if got := spans(c.names); got != c.want {
			t.Errorf("%v is written %q, want %q", c.names, got, c.want)
		}
	}
}

// The workers for a promise: one fewer promises less, and more accuracy takes no fewer.
func TestPlanPromise(t *testing.T) {
	file := filepath.Join("..", "..", "examples", "fleet.yaml")
	at := func(promise string) (out struct{ Types []planning.Promising }) {
		t.Helper()
		code, text, errs := sluice(t, "plan", "-f", file, "--system", "ramsis", "--demand", "images=300", "--json",
			"--promise", promise)
		if code != ExitOK {
			t.Fatalf("--promise %s: %d %s", promise, code, errs)
		}
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	low, high := at("0.7,0.01"), at("0.77,0.01")
	if len(low.Types) != 3 || len(high.Types) != 3 {
		t.Fatalf("%+v, %+v: want three types", low, high)
	}
	for i, x := range high.Types {
		if y := low.Types[i]; y.Workers < 1 || x.Workers < y.Workers || y.Promised.Accuracy < 0.7 ||
			x.Promised.Accuracy < 0.77 || x.Promised.Violation > 0.01 {
			t.Errorf("%+v, and for more accuracy %+v", y, x)
		}
	}
	if high.Types[0].Workers == low.Types[0].Workers {
		t.Errorf("%d workers of type %s for either accuracy", low.Types[0].Workers, low.Types[0].DeviceType)
	}
	for args, want := range map[string]int{
		"--system ramsis --promise 0.99,0.01": ExitShortOf, "--system proteus --promise 0.7,0.01": ExitUsage,
		"--system ramsis --promise 0.7": ExitUsage, "--system ramsis --promise 0.7,0.01 --frontier": ExitUsage,
	} {
		if code, _, errs := sluice(t, append([]string{"plan", "-f", file}, strings.Fields(args)...)...); code != want {
			t.Errorf("%s: %d, want %d: %s", args, code, want, errs)
		}
	}
}
