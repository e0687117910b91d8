package test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/longtest"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
)

// smallWorld is a world that a configuration describes.
type smallWorld struct {
	name  string
	kinds []smallKind
	apps  []smallApp
}

type smallKind struct {
	name   string
	count  int
	slower float64 // than the variants say
	memory int     // MiB
	price  float64
}

type smallApp struct {
	name    string
	slo     time.Duration
	rate    float64
	floor   float64
	largest int // items of a query, uniform from 1
	stages  [][]smallVariant
}

type smallVariant struct {
	accuracy  float64
	base, per float64 // ms
	memory    int     // MiB
}

// variant is a variant's name in the configuration.
func (a *smallApp) variant(stage, k int) string { return fmt.Sprintf("%s-%d-%d", a.name, stage, k) }

// ladder is five variants, each twice as fast as the one before it.
func ladder(slowest float64, memory int) (out []smallVariant) {
	for k := range 5 {
		f := float64(int(1) << k)
		out = append(out, smallVariant{0.9 - 0.05*float64(k), slowest / f, slowest / f / 4, memory >> k})
	}
	return out
}

func smallWorlds() []smallWorld {
	one := func(v []smallVariant) [][]smallVariant { return [][]smallVariant{v} }
	return []smallWorld{
		{
			name:  "one kind, one app",
			kinds: []smallKind{{name: "k", count: 3, slower: 1}},
			apps: []smallApp{
				{name: "a", slo: 200 * time.Millisecond, rate: 120, floor: 0.78, stages: one(ladder(40, 400))},
			},
		},
		{
			name: "three kinds, three apps",
			kinds: []smallKind{
				{name: "small", count: 3, slower: 4, price: 0.2}, {name: "middle", count: 3, slower: 2, price: 0.5},
				{name: "large", count: 3, slower: 1, price: 1.2},
			},
			// Nothing runs the most accurate variant of a in time, and small machines not the next one.
			apps: []smallApp{
				{
					name: "a", slo: 100 * time.Millisecond, rate: 60,
					stages: one(append([]smallVariant{{0.95, 160, 20, 900}}, ladder(40, 400)...)),
				},
				{name: "b", slo: 150 * time.Millisecond, rate: 30, floor: 0.8, stages: one(ladder(24, 400))},
				{name: "c", slo: 80 * time.Millisecond, rate: 20, stages: one(ladder(8, 200)[:2])},
			},
		},
		{
			name:  "little memory",
			kinds: []smallKind{{name: "k", count: 3, slower: 1, memory: 800}},
			apps: []smallApp{
				{name: "a", slo: 200 * time.Millisecond, rate: 20, stages: one(ladder(20, 640))},
				{name: "b", slo: 200 * time.Millisecond, rate: 20, stages: one(ladder(20, 640))},
				{name: "c", slo: 200 * time.Millisecond, rate: 20, stages: one(ladder(20, 900))},
			},
		},
		{
			name:  "more apps than workers",
			kinds: []smallKind{{name: "k", count: 2, slower: 1}},
			apps: []smallApp{
				{name: "a", slo: 200 * time.Millisecond, rate: 5, stages: one(ladder(10, 100)[:3])},
				{name: "b", slo: 200 * time.Millisecond, rate: 5, stages: one(ladder(10, 100)[:3])},
				{name: "c", slo: 200 * time.Millisecond, rate: 5, stages: one(ladder(10, 100)[:3])},
				{name: "d", slo: 200 * time.Millisecond, rate: 5, stages: one(ladder(10, 100)[:3])},
			},
		},
		{
			name: "sizes",
			kinds: []smallKind{
				{name: "small", count: 2, slower: 2, price: 0.2}, {name: "large", count: 2, slower: 1, price: 1},
			},
			apps: []smallApp{
				{
					name: "a", slo: 200 * time.Millisecond, rate: 20, largest: 8, floor: 0.82,
					stages: one(ladder(16, 100)[:3]),
				},
			},
		},
		{
			name: "a graph with variants",
			kinds: []smallKind{
				{name: "small", count: 4, slower: 2, price: 0.2}, {name: "large", count: 4, slower: 1, price: 1},
			},
			apps: []smallApp{
				{
					name: "a", slo: 400 * time.Millisecond, rate: 15, floor: 0.82,
					stages: [][]smallVariant{ladder(16, 100)[:3], ladder(10, 100)[:3], ladder(6, 100)[:2]},
				},
			},
		},
	}
}

const smallBatch = 16

// files writes the configuration and the profile of a world, and returns the configuration's path.
func (w *smallWorld) files(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	var b strings.Builder
	add := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	add("version: 1\nprofiles: [profile.json]\ndevice_types:")
	for _, k := range w.kinds {
		memory := ""
		if k.memory > 0 {
			memory = fmt.Sprintf(", memory: %dMiB", k.memory)
		}
		add("  - {name: %s, cores: 4, price_per_hour: %v%s}", k.name, k.price, memory)
	}
	add("workers:")
	for _, k := range w.kinds {
		add("  - {name: %s, device_type: %s, count: %d, backend: {kind: fake}}", k.name, k.name, k.count)
	}
	add("apps:")
	file := &profiler.File{Version: profiler.Version}
	for _, a := range w.apps {
		add("  - name: %s\n    slo: {latency: %v}\n    demand: %v", a.name, a.slo, a.rate)
		add("    accuracy_floor: %v", a.floor)
		add("    inputs: [{name: x, datatype: FP32, shape: [-1, 2]}]")
		add("    outputs: [{name: y, datatype: FP32, shape: [-1, 2]}]")
		if a.largest > 1 {
			add("    items: {distribution: uniform, min: 1, max: %d}", a.largest)
		}
		indent := "    "
		if len(a.stages) > 1 {
			add("    stages:")
			indent = "        "
		}
		for s, variants := range a.stages {
			if len(a.stages) > 1 {
				add("      - name: s%d", s)
				if s+1 < len(a.stages) {
					add("        next: [{to: s%d}]", s+1)
				}
			}
			add("%svariants:", indent)
			for k, v := range variants {
				add("%s  - {name: %s, accuracy: %v, max_batch: %d, memory: %dMiB}", indent, a.variant(s, k), v.accuracy,
					smallBatch, v.memory)
				for _, d := range w.kinds {
					for items := 1; items <= smallBatch; items *= 2 {
						us := (v.base + v.per*float64(items)) * d.slower * 1e3
						file.Points = append(file.Points, profiler.Point{
							Variant: a.variant(s, k), DeviceType: d.name, Batch: items, Concurrency: 1,
							Samples: 100, Mean: us, StdDev: us / 100, P50: us, P90: us, P95: us, P99: us,
						})
					}
				}
			}
		}
	}
	path := filepath.Join(folder, "sluice.yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := file.WriteFile(filepath.Join(folder, "profile.json")); err != nil {
		t.Fatal(err)
	}
	return path
}

// load is the demand that the configuration expects, for a few seconds.
func (w *smallWorld) load() *workload.Spec {
	out := &workload.Spec{Seed: 1, DurationS: longtest.Of(2.0, 10)}
	for _, a := range w.apps {
		x := workload.AppSpec{App: a.name, Rate: a.rate}
		if a.largest > 1 {
			x.Items = workload.ItemsSpec{Distribution: "uniform", Min: 1, Max: int32(a.largest)}
		}
		out.Apps = append(out.Apps, x)
	}
	return out
}

// Every system plans every small world and serves some of every app in time, never below the app's accuracy floor, or
// refuses it with a reason that names its rule.
func TestEverySystemServesWhatItsRuleExpresses(t *testing.T) {
	t.Parallel()
	for _, w := range smallWorlds() {
		path := w.files(t)
		opened, err := host.Open(path, host.Options{Notice: func(s string) { t.Logf("%s: notice: %s", w.name, s) }})
		if err != nil {
			t.Fatal(err)
		}
		profiled, err := opened.Profile()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range systems.All() {
			coarse(t, &s)
			rep, err := simulated(t, profiled.Under(s), w.load())
			if err != nil {
				if !namesRule(s.Planner, err) {
					t.Errorf("%s: %s refuses with a reason that does not name its rule: %v", w.name, s.Name, err)
				}
				continue
			}
			check(t, w.name+": "+s.Name, opened.Spec(), rep)
		}
	}
}

// coarse has a system that makes policies make few and simple ones.
func coarse(t *testing.T, s *systems.System) {
	t.Helper()
	var given map[string]any
	switch s.Planner {
	case "ramsis":
		given = map[string]any{"levels": 10, "longest": 8, "known_load": true}
	case "tidal":
		given = map[string]any{"known_load": true}
	}
	if err := s.Set(given); err != nil {
		t.Fatal(err)
	}
}

// rules are, by planner, what it may say of a world that its rule does not express. All others plan every small world.
var rules = map[string]string{
	"ramsis":         "knows the slack of one|each serves one stage",
	"tidal":          "knows the slack of one|each serves one stage|pools workers of one type",
	"jellyfish":      "knows the response of one|each serves one stage",
	"modelswitching": "knows the response of one|each serves one stage",
	"infaas-target":  "knows the response of one|each serves one stage",
	"allvariants":    "knows the response of one|each serves one stage",
	"kairos":         "rents machines for apps of one|gives a machine to one app",
}

// namesRule tells whether a refusal names the rule of a planner.
func namesRule(planner string, err error) bool {
	rule, any := rules[planner]
	return any && regexp.MustCompile(rule).MatchString(err.Error())
}

func simulated(t *testing.T, p *host.Profiled, load *workload.Spec) (*report.Report, error) {
	t.Helper()
	planned, err := p.Plan(t.Context())
	if err != nil {
		return nil, err
	}
	return planned.Simulate(host.Simulation{Seed: 1}, "", load)
}

// check holds that something of every app was served in time, and nothing below its floor.
func check(t *testing.T, name string, spec *serving.Spec, rep *report.Report) {
	t.Helper()
	for a := range rep.Apps {
		app := &rep.Apps[a]
		if app.InTime == 0 {
			t.Errorf("%s: nothing of %d queries of app %s is served in time (%d late, %d dropped, %d refused)", name,
				app.Offered, app.Name, app.Late, app.Dropped, app.Refused)
		}
		for _, v := range app.Variants {
			for at := range spec.Variants {
				if spec.Variants[at].Name == v.Name && spec.BelowFloor(serving.VariantID(at)) {
					t.Errorf("%s: variant %s, below the floor, has served %d", name, v.Name, v.Served)
				}
			}
		}
	}
}

// Where machines cannot run a variant, a notice says so once, whatever the system.
func TestWhatCannotRunIsSaidOnce(t *testing.T) {
	w := smallWorlds()[1]
	said := map[string]int{}
	opened, err := host.Open(w.files(t), host.Options{Notice: func(s string) { said[s]++ }})
	if err != nil {
		t.Fatal(err)
	}
	profiled, err := opened.Profile()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sluice", "triton-like", "proteus", "sluice"} {
		s, err := systems.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := profiled.Under(s).Plan(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	of := 0
	for s, n := range said {
		if strings.Contains(s, `variant "a-0-0"`) {
			of += n
		}
		if n != 1 {
			t.Errorf("said %d times: %s", n, s)
		}
	}
	if of != 1 {
		t.Errorf("variant a-0-0 is named %d times in %v", of, said)
	}
}

// A server without a rule for variants runs the most accurate one that carries the demand; without one, the most
// accurate.
func TestServersWithoutARuleCarryTheDemand(t *testing.T) {
	for _, c := range []struct {
		rate float64
		want string
	}{{0, "a-0-0"}, {250, "a-0-0"}, {500, "a-0-1"}, {1100, "a-0-2"}, {2000, "a-0-3"}, {50_000, "a-0-4"}} {
		// A machine carries 160/s of the most accurate variant in batches of 16, which take half the objective; each
		// variant twice as much as the one before it.
		w := smallWorld{
			kinds: []smallKind{{name: "k", count: 2, slower: 1}},
			apps: []smallApp{
				{name: "a", slo: 200 * time.Millisecond, rate: c.rate, stages: [][]smallVariant{ladder(20, 1)}},
			},
		}
		opened, err := host.Open(w.files(t), host.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if opened, err = opened.WithSystem("triton-like"); err != nil {
			t.Fatal(err)
		}
		profiled, err := opened.Profile()
		if err != nil {
			t.Fatal(err)
		}
		planned, err := profiled.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range planned.FirstPlan().Instances {
			if got := opened.Spec().Variants[i.Variants[0].Variant].Name; got != c.want {
				t.Errorf("at %v/s: %s runs, want %s", c.rate, got, c.want)
			}
		}
		if c.rate == 0 || c.rate > 10_000 {
			continue
		}
		rep, err := planned.Simulate(host.Simulation{Seed: 1}, "", w.load())
		if err != nil {
			t.Fatal(err)
		}
		if rep.Overall.ViolationRatio > 0.05 {
			t.Errorf("at %v/s: %v are late", c.rate, rep.Overall.ViolationRatio)
		}
	}
}
