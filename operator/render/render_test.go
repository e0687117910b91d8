package render

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/cell"
)

func quantity(s string) *resource.Quantity {
	q := resource.MustParse(s)
	return &q
}

func fleet() *v1alpha1.Fleet {
	return &v1alpha1.Fleet{
		ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "ns", UID: "u"},
		Spec: v1alpha1.FleetSpec{System: "sluice", Image: "sluice:1", MaxSurge: "25%",
			PendingTimeout: &metav1.Duration{Duration: time.Minute},
			Replan:         &metav1.Duration{Duration: 10 * time.Second}},
	}
}

func machineType(name string, cores int32) *v1alpha1.MachineType {
	return &v1alpha1.MachineType{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MachineTypeSpec{
		Tenure: v1alpha1.Rented, PricePerHour: quantity("0.4"), Most: 20, Cores: cores, Memory: quantity("4Gi"),
	}}
}

func variant(name, accuracy string) v1alpha1.Variant {
	return v1alpha1.Variant{Name: name, Accuracy: quantity(accuracy),
		Model: v1alpha1.Model{URI: "pvc://models/" + name}}
}

func oneStage(name string, variants ...v1alpha1.Variant) *v1alpha1.InferenceApp {
	return &v1alpha1.InferenceApp{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.InferenceAppSpec{
		Objective: v1alpha1.Objective{
			Latency: metav1.Duration{Duration: 80 * time.Millisecond}, Percentile: quantity("99"),
		},
		Weight: quantity("1"), Late: "drop", Demand: quantity("20"), Variants: variants,
	}}
}

func graph(name string) *v1alpha1.InferenceApp {
	a := oneStage(name)
	a.Spec.Variants = nil
	a.Spec.Stages = []v1alpha1.Stage{
		{Name: "detect", Variants: []v1alpha1.Variant{variant("yolo", "0.9")},
			Next: []v1alpha1.Edge{{To: "cut", FanOut: quantity("2.5")}}},
		{Name: "cut", Function: "topk", With: map[string]string{"k": "3"},
			Next: []v1alpha1.Edge{{To: "name"}}},
		{Name: "name", Variants: []v1alpha1.Variant{variant("small", "0.8")}},
	}
	return a
}

func input() *Input {
	return &Input{
		Fleet: fleet(), Cell: 1,
		Types: []*v1alpha1.MachineType{machineType("large", 8), machineType("small", 2), machineType("none", 2)},
		Most:  map[string]int32{"large": 1, "small": 12}, Budget: 3.5,
		Apps: []*v1alpha1.InferenceApp{
			oneStage("faces", variant("small", "0.91"), variant("big", "0.97")),
			oneStage("cars", variant("small", "1")),
			graph("street"),
		},
	}
}

// opened opens a cell's files as a dispatcher does.
func opened(t *testing.T, files cell.Files) *host.Profiled {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o, err := host.Open(filepath.Join(dir, cell.KeyConfig), host.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, files[cell.KeyConfig])
	}
	p, err := o.Profile()
	if err != nil {
		t.Fatalf("%v\n%s", err, files[cell.KeyConfig])
	}
	return p
}

func TestCellIsServable(t *testing.T) {
	in := input()
	out, err := Cell(in)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.RefusedApps)+len(out.RefusedTypes) > 0 {
		t.Fatal(out.RefusedApps, out.RefusedTypes)
	}
	p := opened(t, out.Files)
	spec := p.Spec()
	var apps, workers []string
	for _, a := range spec.Apps {
		apps = append(apps, a.Name)
	}
	for _, w := range spec.Workers {
		workers = append(workers, w.Name)
	}
	if want := []string{"cars", "faces", "street"}; !slices.Equal(apps, want) || !slices.Equal(out.Apps, want) {
		t.Errorf("apps are %v and %v, want %v", apps, out.Apps, want)
	}
	if len(workers) != 13 || workers[0] != "large-0" || workers[1] != "small-0" || workers[12] != "small-11" {
		t.Errorf("workers are %v", workers)
	}
	if s := p.File().System; s.Budget != 3.5 || s.Options["learn"] != "true" ||
		s.Replan != config.Duration(10*time.Second) {
		t.Errorf("system is %+v", s)
	}
	m, err := cell.Decode(out.Files[cell.KeyMachines])
	if err != nil {
		t.Fatal(err)
	}
	if m.Image != "sluice:1" || m.Cell != 1 || len(m.Types) != 2 || m.Types["small"].Most != 12 {
		t.Errorf("machines are %+v", m)
	}
	for v := range spec.Variants {
		name := spec.Variants[v].Name
		if _, ok := m.Models[name]; !ok && name != "street.cut" {
			t.Errorf("variant %q has no model in %v", name, m.Models)
		}
	}
	if m.Models["street.name.small"].URI != "pvc://models/small" {
		t.Errorf("models are %v", m.Models)
	}
	if len(out.Believed) != 2*5 {
		t.Errorf("believed are %v", out.Believed)
	}
}

func TestOrderDoesNotMatter(t *testing.T) {
	want, err := Cell(input())
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 10 {
		in := input()
		r.Shuffle(len(in.Apps), func(i, j int) { in.Apps[i], in.Apps[j] = in.Apps[j], in.Apps[i] })
		r.Shuffle(len(in.Types), func(i, j int) { in.Types[i], in.Types[j] = in.Types[j], in.Types[i] })
		got, err := Cell(in)
		if err != nil {
			t.Fatal(err)
		}
		for name := range want.Files {
			if got.Files[name] != want.Files[name] {
				t.Fatalf("%s differs:\n%s\n%s", name, got.Files[name], want.Files[name])
			}
		}
	}
}

func TestWhatCannotBeUsedIsLeftOut(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Input)
		app    string // refused, and why
		why    string
		kind   string // machine type that is refused, and why
		whyNot string
	}{
		{name: "two first stages", change: func(in *Input) {
			in.Apps[2].Spec.Stages[0].Next = nil
		}, app: "street", why: `spec.stages 2 stages are fed by none ("detect", "street.cut"): only the first ` +
			`one may be, connect the others with next`},
		{name: "a circle", change: func(in *Input) {
			in.Apps[2].Spec.Stages[2].Next = []v1alpha1.Edge{{To: "cut"}}
		}, app: "street", why: `spec.stages stages feed each other in a circle: look at "street.cut", "name"`},
		{name: "no such function", change: func(in *Input) { in.Apps[2].Spec.Stages[1].Function = "blur" },
			app: "street",
			why: `spec.stages[1].function there is no function "blur"`},
		{name: "a floor that nothing reaches", change: func(in *Input) {
			in.Apps[0].Spec.AccuracyFloor = quantity("0.99")
		}, app: "faces", why: `spec.accuracyFloor is 0.99, but the most accurate variant of stage "faces" has 0.97`},
		{name: "a part with the name of a type", change: func(in *Input) {
			in.Types[1].Spec.Parts = []v1alpha1.Part{{Name: "large", Cores: 1}}
		}, kind: "small", whyNot: `spec.parts[0].name "large" is already the name of machine type "large"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := input()
			c.change(in)
			out, err := Cell(in)
			if err != nil {
				t.Fatal(err)
			}
			if got := out.RefusedApps[c.app]; c.app != "" && !strings.HasPrefix(got, c.why) {
				t.Errorf("app %s: %q, want %q", c.app, got, c.why)
			}
			if got := out.RefusedTypes[c.kind]; c.kind != "" && !strings.HasPrefix(got, c.whyNot) {
				t.Errorf("machine type %s: %q, want %q", c.kind, got, c.whyNot)
			}
			if n := len(out.RefusedApps) + len(out.RefusedTypes); n != 1 {
				t.Errorf("%d are refused: %v %v", n, out.RefusedApps, out.RefusedTypes)
			}
			opened(t, out.Files)
		})
	}
}

func TestFleetThatCannotBeUsed(t *testing.T) {
	in := input()
	in.Fleet.Spec.System = "nosuch"
	if _, err := Cell(in); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("got %v", err)
	}
	in = input()
	in.Fleet.Spec.Options = map[string]string{"headrom": "2"}
	if _, err := Cell(in); err == nil || !strings.Contains(err.Error(), "headrom") {
		t.Errorf("got %v", err)
	}
	for _, change := range []func(*Input){func(in *Input) { in.Apps = nil }, func(in *Input) { in.Most = nil }} {
		in = input()
		change(in)
		out, err := Cell(in)
		if err != nil || len(out.Files) > 0 || out.Machines == nil {
			t.Errorf("without apps or machines: %+v, %v", out, err)
		}
	}
}

func TestLatenciesAreMeasuredScaledOrBelieved(t *testing.T) {
	in := input()
	ms := func(n float64) metav1.Duration {
		return metav1.Duration{Duration: time.Duration(n * float64(time.Millisecond))}
	}
	load := ms(1500)
	measured := func(model string) []*v1alpha1.Profile {
		return []*v1alpha1.Profile{{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: v1alpha1.ProfileSpec{
			App: "faces", Variant: "small", MachineType: "small", Model: model, Load: &load,
			Latencies: []v1alpha1.Latency{
				{Batch: 8, Mean: ms(20), P95: ms(24), Runs: 100}, {Batch: 1, Mean: ms(4), P95: ms(6), Runs: 100}},
		}}}
	}
	points := func() map[string]float64 {
		out, err := Cell(in)
		if err != nil {
			t.Fatal(err)
		}
		f, err := profiler.Decode(strings.NewReader(out.Files[cell.KeyProfile]))
		if err != nil {
			t.Fatal(err)
		}
		opened(t, out.Files)
		all := map[string]float64{}
		for _, p := range f.Points {
			all[fmt.Sprintf("%s %s %d", p.Variant, p.DeviceType, p.Batch)] = p.P95 / 1e3
		}
		return all
	}
	in.Profiles = measured("pvc://models/small")
	got := points()
	for key, want := range map[string]float64{
		"faces.small small 1": 6, "faces.small small 8": 24, // measured
		"faces.small large 1": 1.5, "faces.small large 8": 6, // with four times the cores
		"faces.big small 1": 20, // a quarter of the objective
	} {
		if got[key] != want {
			t.Errorf("%s takes %v ms, want %v", key, got[key], want)
		}
	}
	// A profile of another model counts no more.
	in.Profiles = measured("pvc://models/other")
	if got := points(); got["faces.small small 1"] != 20 || got["faces.small large 1"] != 20 {
		t.Errorf("got %v", got)
	}
}
