package test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/host"
	"github.com/sluice-serving/sluice/measure/profiler"
	"github.com/sluice-serving/sluice/measure/report"
	"github.com/sluice-serving/sluice/measure/workload"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/systems"
)

// smallWorld is a world that a configuration describes.
type smallWorld struct {
	name  string
	kinds []smallKind
	apps  []smallApp
	// own are the systems whose rule cannot express the world, with what they say.
	refusals map[string]string
}

type smallKind struct {
	name           string
	count          int
	slower         float64 // than the variants say
	memory         int     // MiB
	price          float64
	cannotBeServed bool
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

// name is the variant's in the configuration.
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
			apps:  []smallApp{{name: "a", slo: 200 * time.Millisecond, rate: 120, floor: 0.78, stages: one(ladder(40, 400))}},
		},
		{
			name: "three kinds, three apps",
			kinds: []smallKind{
				{name: "small", count: 3, slower: 4, price: 0.2}, {name: "middle", count: 3, slower: 2, price: 0.5},
				{name: "large", count: 3, slower: 1, price: 1.2},
			},
			apps: []smallApp{
				{name: "a", slo: 100 * time.Millisecond, rate: 60, stages: one(ladder(40, 400))},
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
				{name: "a", slo: 200 * time.Millisecond, rate: 20, largest: 8, floor: 0.82, stages: one(ladder(16, 100)[:3])},
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
		add("  - name: %s\n    slo: {latency: %v}\n    demand: %v\n    accuracy_floor: %v", a.name, a.slo, a.rate, a.floor)
		add("    inputs: [{name: x, datatype: FP32, shape: [-1, 2]}]\n    outputs: [{name: y, datatype: FP32, shape: [-1, 2]}]")
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
							Variant: a.variant(s, k), DeviceType: d.name, Batch: items, Concurrency: 1, Samples: 100, Mean: us,
							StdDev: us / 100, P50: us, P90: us, P95: us, P99: us,
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
	out := &workload.Spec{Seed: 1, DurationS: 10}
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
			began := time.Now()
			rep, err := simulated(t, profiled.Under(s), w.load())
			if d := time.Since(began); d > time.Second {
				t.Logf("%s: %s took %v", w.name, s.Name, d)
			}
			if err != nil {
				known := false
				for _, r := range refusals {
					known = known || r.MatchString(err.Error())
				}
				if !known {
					t.Errorf("%s: %s refuses: %v", w.name, s.Name, err)
				} else {
					t.Logf("%s: %s refuses: %v", w.name, s.Name, err)
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
	given := map[string]string{}
	switch s.Planner {
	case "ramsis":
		given = map[string]string{"levels": "10", "longest": "8", "known_load": "true"}
	case "tidal":
		given = map[string]string{"known_load": "true"}
	}
	if err := s.Set(given); err != nil {
		t.Fatal(err)
	}
}

// refusals are the reasons that name a rule which does not express a world.
var refusals = []*regexp.Regexp{}

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
