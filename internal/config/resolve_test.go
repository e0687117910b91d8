package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/planner/static"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// A placement converts to the instances of the static planner.
var _ = static.Instance(Instance{})

func write(t *testing.T, root, name, text string) {
	t.Helper()
	at := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func model(t *testing.T, root, name string, dims ...int64) {
	t.Helper()
	at := filepath.Join("models", name, "model.onnx")
	write(t, root, at, "")
	if err := onnxmodel.Identity(onnxmodel.Float32, dims...).Write(filepath.Join(root, at)); err != nil {
		t.Fatal(err)
	}
}

func resolve(t *testing.T, root, text string) (*Resolved, error) {
	t.Helper()
	f, err := Parse([]byte(text), filepath.Join(root, "sluice.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return f.Resolve()
}

const localHead = `version: 1
device_types: [{name: local, cores: 4, price_per_hour: 0.5, memory: 1GiB}]
workers: [{name: here}]
models: {repository: models}
`

func TestResolveWithRepository(t *testing.T) {
	root := t.TempDir()
	model(t, root, "small/1", -1, 3)
	model(t, root, "small/2", -1, 3)
	model(t, root, "large/7", -1, 3)
	write(t, root, "models/small/config.pbtxt", "max_batch_size: 8 version_policy { all {} } optimization {}")
	w, err := resolve(t, root, localHead+`
profiles: [p.json]
apps:
  - name: task
    slo: {latency: 20ms, percentile: 95}
    late: serve-late
    weight: 3
    queue_limit: 7
    variants:
      - {name: s1, model: small, version: 1, accuracy: 0.5}
      - {name: s2, model: small, accuracy: 0.6, max_batch: 4, memory: 2MiB}
      - {name: large, accuracy: 0.9}
`)
	if err != nil {
		t.Fatal(err)
	}
	s := w.Spec
	if want := (serving.App{
		Name: "task", SLO: serving.SLO{Latency: 20 * time.Millisecond, Percentile: 95}, Late: serving.ServeLate,
		Weight: 3, QueueLimit: 7, ColdWait: 30 * time.Second, Stages: []serving.StageID{0},
	}); !reflect.DeepEqual(s.Apps[0], want) {
		t.Errorf("app %+v", s.Apps[0])
	}
	if want := []serving.DeviceType{
		{Name: "local", PricePerHour: 0.5, Cores: 4, MemoryBytes: 1 << 30},
	}; !reflect.DeepEqual(s.DeviceTypes, want) {
		t.Errorf("device types %+v", s.DeviceTypes)
	}
	var got []string
	for i, v := range s.Variants {
		b := w.Variants[i]
		rel, _ := filepath.Rel(root, b.Path)
		got = append(got, fmt.Sprintf("%s %s/%s %s %d %v %v", v.Name, b.Model, b.Version, rel, v.MaxBatch,
			v.MemoryBytes > 0, b.Batched))
	}
	want := []string{
		"s1 small/1 models/small/1/model.onnx 8 true true",
		"s2 small/2 models/small/2/model.onnx 4 true true",
		"large large/7 models/large/7/model.onnx 64 true true",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("variants %q", got)
	}
	io := []tensor.Spec{{Name: "input", DType: tensor.FP32, Shape: []int64{-1, 3}}}
	if !reflect.DeepEqual(w.Apps[0].Inputs, io) || w.Apps[0].Outputs[0].Name != "output" || !w.Apps[0].Batched {
		t.Errorf("tensors %+v", w.Apps[0])
	}
	if want := []Instance{
		{Variants: []serving.VariantID{0, 1, 2}},
	}; !reflect.DeepEqual(w.Placement, want) {
		t.Errorf("placement %+v", w.Placement)
	}
	if want := []string{
		`model "small": config.pbtxt: optimization (line 1) is not read`,
	}; !reflect.DeepEqual(w.Warnings, want) {
		t.Errorf("warnings %q", w.Warnings)
	}
	if w.Profiles[0] != filepath.Join(root, "p.json") {
		t.Errorf("profiles %q", w.Profiles)
	}
	if id, ok := w.App("task"); !ok || id != 0 {
		t.Error("App(task)")
	}
	if id, ok := w.VariantOf(0, "large"); !ok || id != 2 {
		t.Error("VariantOf(large)")
	}
	if _, ok := w.VariantOf(0, "absent"); ok {
		t.Error("VariantOf(absent)")
	}
}

func TestResolveProblems(t *testing.T) {
	root := t.TempDir()
	model(t, root, "batched/1", -1, 3)
	model(t, root, "wide/1", -1, 4)
	model(t, root, "single/1", 2, 3)
	model(t, root, "bounded/1", -1, 3)
	write(t, root, "models/bounded/config.pbtxt", "max_batch_size: 8")
	write(t, root, "models/broken/1/model.onnx", "no model")
	app := func(variants string) string {
		return localHead + "apps:\n  - {name: a, slo: {latency: 1s}, variants: [" + variants + "]}\n"
	}
	for _, c := range []struct{ text, want string }{
		{
			app("{name: bached}"), `sluice.yaml:6: apps[0].variants[0].model: model "bached": not found in ` + root +
				`/models (did you mean "batched"?)`,
		},
		{
			app("{name: batched, version: 2}"),
			`apps[0].variants[0].version: model "batched": version "2": not found or not served: there is 1`,
		},
		{app("{name: broken}"), `apps[0].variants[0].model: model "broken": read model`},
		{
			app("{name: batched, mask: input}"),
			`apps[0].variants[0].mask: is "input", but model "batched" has no such input of whole numbers or BOOL`,
		},
		{
			app("{name: batched, length: {input: ids, axes: [1]}}"),
			`apps[0].variants[0].length.input: is "ids", want the name of an input of the model: ["input"]`,
		},
		{app("{name: batched, length: {input: input}}"), `apps[0].variants[0].length.axes: is empty`},
		{app("{name: batched, length: {input: input, axes: [0]}}"), `apps[0].variants[0].length.axes: has 0`},
		{app("{name: batched, length: {input: input, axes: [2]}}"), `apps[0].variants[0].length.axes: has 2`},
		{app("{name: batched, length: {input: input, axes: [1, 1]}}"), `apps[0].variants[0].length.axes: has 1 twice`},
		{
			app("{name: bounded, max_batch: 9}"),
			`apps[0].variants[0].max_batch: is 9, but max_batch_size of model "bounded" is 8`,
		},
		{
			app("{name: single, max_batch: 2}"),
			`apps[0].variants[0].max_batch: is 2, but model "single" has no batch dimension`,
		},
		{
			app("{name: batched, accuracy: 1}, {name: wide, accuracy: 1}"),
			`apps[0]: variants "batched" and "wide" differ in their inputs: input FP32 [-1,3] and input FP32 [-1,4]`,
		},
		{app("{name: batched, memory: 2GiB}"), `apps[0]: no variant of stage "a" fits into the memory of any worker`},
		{
			app("{name: batched}") + "placement: [{worker: here, batch_limit: 65}]",
			`placement[0].batch_limit: is 65, but variant "batched" takes at most 64 items`,
		},
		{
			app("{name: batched, memory: 600MiB}") + "placement: [{worker: here}, {worker: here}]",
			`placement: worker "here": the variants placed on it need 1258291200 bytes of memory, device type ` +
				`"local" has 1073741824`,
		},
		{
			app("{name: batched}") +
				"  - {name: b, slo: {latency: 1s}, variants: [{name: wide}]}\nsystem: {router: fcfs, batcher: " +
				"single}\nplacement: [{worker: here, app: a}]", `placement: no instance serves stage "b" of app "b"`,
		},
		{
			strings.Replace(app("{name: batched}"), "repository: models", "repository: nowhere", 1),
			`models.repository: model repository ` + root + `/nowhere`,
		},
	} {
		w, err := resolve(t, root, c.text)
		var p Problems
		if !errors.As(err, &p) || !strings.Contains(err.Error(), c.want) || w != nil {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

func TestStagesLeftToAPlannerLeadToWarnings(t *testing.T) {
	w, err := resolve(t, t.TempDir(),
		small+"  - {name: b, slo: {latency: 1s}, variants: [{name: x}]}\nplacement: [{worker: here, app: a}]")
	if err != nil || len(w.Warnings) != 1 || !strings.Contains(w.Warnings[0], `no instance serves stage "b"`) {
		t.Errorf("world %+v, %v", w, err)
	}
}

func TestModelsOfRemoteServersNeedNoFiles(t *testing.T) {
	root := t.TempDir()
	model(t, root, "known/1", -1, 3)
	w, err := resolve(t, root, `version: 1
device_types: [{name: d}]
workers: [{name: w, count: 2, backend: {kind: openinference, addresses: ["h:1", "h:2"]}}]
models: {repository: models}
apps:
  - {name: a, slo: {latency: 1s}, variants: [{name: remote, accuracy: 0.5}, {name: known, accuracy: 0.6}]}
  - {name: b, slo: {latency: 1s}, variants: [{name: far, model: remote, version: 3}]}
`)
	if err != nil {
		t.Fatal(err)
	}
	if b := w.Variants[0]; b.Path != "" || b.Version != "" || b.Inputs != nil || w.Spec.Variants[0].MaxBatch != 64 {
		t.Errorf("remote %+v", b)
	}
	if w.Apps[0].Inputs == nil || w.Apps[1].Inputs != nil || w.Variants[2].Version != "3" ||
		w.Variants[2].Model != "remote" {
		t.Errorf("apps %+v", w.Apps)
	}
	if w.Backends[0].Address != "h:1" || w.Backends[1].Address != "h:2" || w.Spec.Workers[1].Name != "w-1" {
		t.Errorf("backends %+v", w.Backends)
	}
	if len(w.Placement) != 4 || w.Placement[3].Worker != 1 || w.Placement[3].Stage != 1 {
		t.Errorf("placement %+v", w.Placement)
	}
}

func TestStagesAreSortedAndJoined(t *testing.T) {
	w, err := resolve(t, t.TempDir(), `version: 1
device_types: [{name: d, cores: 8}]
workers: [{name: w, backend: {kind: fake}}]
apps:
  - {name: first, slo: {latency: 1s}, variants: [{name: x}]}
  - name: diamond
    slo: {latency: 1s}
    stages:
      - {name: end, variants: [{name: e}]}
      - {name: left, variants: [{name: l}], next: [{to: end, fan_out: 0}]}
      - {name: start, variants: [{name: s}], next: [{to: right, fan_out: 2.5}, {to: left}]}
      - {name: right, variants: [{name: r}], next: [{to: end}]}
placement:
  - {worker: w, app: first, slots: 2, cores: 2}
  - {worker: w, app: diamond, stage: start, cores: 1}
  - {worker: w, app: diamond, stage: left}
  - {worker: w, app: diamond, stage: right}
  - {worker: w, app: diamond, stage: end, weight: 4}
`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range w.Spec.Stages[1:] {
		line := fmt.Sprintf("%s %d", s.Name, s.Joins)
		for _, e := range s.Next {
			line += fmt.Sprintf(" ->%s x%v", w.Spec.Stages[e.To].Name, e.FanOut)
		}
		got = append(got, line)
	}
	// An explicit fan_out of 0 stays 0; a missing one is 1.
	want := []string{"start 0 ->right x2.5 ->left x1", "left 1 ->end x0", "right 1 ->end x1", "end 2"}
	if !reflect.DeepEqual(got, want) || w.Spec.Source(1) != 1 {
		t.Errorf("stages %q", got)
	}
	var cores []int
	var parts []string
	for _, i := range w.Placement {
		cores, parts = append(cores, i.Cores), append(parts, w.Spec.DeviceTypes[i.Part-1].Name)
	}
	// 8 cores less 2x2 and 1 leave 3 for three instances.
	if !reflect.DeepEqual(cores, []int{2, 1, 1, 1, 1}) || w.Placement[4].Share != 4 ||
		!reflect.DeepEqual(parts, []string{"d/2x2", "d/1", "d/1", "d/1", "d/1"}) {
		t.Errorf("placement %+v, parts %v", w.Placement, parts)
	}
	if want := []Cut{{1, 0, 2, 2}, {2, 0, 1, 1}}; !reflect.DeepEqual(w.Cuts, want) {
		t.Errorf("cuts %+v", w.Cuts)
	}
}

// Instances that ask for more threads than there are take turns, and a warning says so. So does an instance that asks
// for all of its worker, without one.
func TestInstancesThatAskForTooManyCoresTakeTurns(t *testing.T) {
	for cores, warned := range map[int]bool{3: true, 4: false} {
		w, err := resolve(t, t.TempDir(), fmt.Sprintf(`version: 1
device_types: [{name: d, cores: 4}]
workers: [{name: w, backend: {kind: fake}}, {name: x, backend: {kind: fake}}]
apps: [{name: a, slo: {latency: 1s}, variants: [{name: x}]}, {name: b, slo: {latency: 1s}, variants: [{name: y}]}]
placement:
  - {worker: w, app: a, cores: %d}
  - {worker: %s, app: b, cores: %d}
`, cores, map[int]string{3: "w", 4: "x"}[cores], cores))
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range w.Placement {
			if i.Cores != 0 || i.Part != 0 {
				t.Errorf("%d cores each: %+v", cores, i)
			}
		}
		got := len(w.Warnings) == 1 && strings.Contains(w.Warnings[0], "ask for 6 threads, it has 4")
		if got != warned {
			t.Errorf("%d cores each: warnings %q", cores, w.Warnings)
		}
	}
}

func TestDefaultPlacementLeavesOutWhatDoesNotFit(t *testing.T) {
	w, err := resolve(t, t.TempDir(), `version: 1
device_types: [{name: d, cores: 8, memory: 100MiB}]
workers: [{name: w, count: 2, backend: {kind: fake}}]
apps:
  - {name: a, slo: {latency: 1s}, variants: [{name: x, accuracy: 1, memory: 40MiB}, {name: y, accuracy: 1,
      memory: 110MiB}, {name: z, accuracy: 1, memory: 60MiB}]}
`)
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Placement) != 2 || !reflect.DeepEqual(w.Placement[1].Variants, []serving.VariantID{0, 2}) || !w.Proposed {
		t.Errorf("placement %+v", w.Placement)
	}
	if len(w.Warnings) != 1 || !strings.Contains(w.Warnings[0], `variant "y" needs 110MiB of memory: it is not `) {
		t.Errorf("warnings %q", w.Warnings)
	}
}

func TestExamples(t *testing.T) {
	for name, check := range map[string]func(*testing.T, *Resolved){
		"ladder.yaml": func(t *testing.T, w *Resolved) {
			if len(w.Spec.Workers) != 4 || len(w.Placement) != 6 || len(w.Spec.Stages) != 3 ||
				len(w.Warnings) != 0 {
				t.Errorf("world %+v", w)
			}
		},
		"remote.yaml": func(t *testing.T, w *Resolved) {
			if w.Backends[1].Address != "localhost:9003" || w.Backends[1].LoadModels {
				t.Errorf("backends %+v", w.Backends)
			}
		},
		"minimal.yaml": nil, // needs a repository
	} {
		f, err := Load(filepath.Join("..", "..", "examples", name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if check == nil {
			continue
		}
		w, err := f.Resolve()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		check(t, w)
	}
	listed, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(listed) < 3 {
		t.Errorf("examples %q, %v", listed, err)
	}
	// Other files there must at least be readable.
	for _, path := range listed {
		if _, err := Load(path); err != nil {
			t.Error(err)
		}
	}
}

func TestMinimalExampleRuns(t *testing.T) {
	root := t.TempDir()
	model(t, root, "digits/1", -1, 3)
	text, err := os.ReadFile("../../examples/minimal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w, err := resolve(t, root, string(text))
	if err != nil || w.Variants[0].Path == "" {
		t.Errorf("world %+v, %v", w, err)
	}
	f, err := Parse(text, filepath.Join(root, "sluice.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if s, err := f.Spec(); err != nil || s.Apps[0].Name != "digits" {
		t.Errorf("Spec() = %v, %v", s, err)
	}
}

// The sizes in the file are those that planners expect. Without any, queries have one item each and no mix.
func TestItems(t *testing.T) {
	file := func(items string) string {
		return strings.Replace(small, "slo:", "items: "+items+", slo:", 1)
	}
	for _, c := range []struct {
		items   string
		largest int
		classes int
		err     string
	}{
		{"{distribution: histogram, sizes: [8, 1], weights: [1, 3]}", 8, 2, ""},
		{
			"{distribution: mixture, weights: [1, 1], parts: [{value: 2}, {distribution: uniform, min: 3, max: 4}]}", 4,
			3, "",
		},
		{"{distribution: uniform, min: 1, max: 100, round_up_to: 10}", 100, 10, ""},
		{"{distribution: uniform, min: 5, max: 4}", 0, 0, "apps[0].items: min and max: are 5 and 4"},
		{"{distribution: constant, value: 99999999999}", 0, 0, "apps[0].items: value"},
	} {
		f, err := Parse([]byte(file(c.items)), "x.yaml")
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v", c.items, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.items, err)
			continue
		}
		spec, err := f.Spec()
		if err != nil {
			t.Fatal(err)
		}
		if m := spec.Apps[0].Mix; m.Largest() != c.largest || m.Classes() != c.classes {
			t.Errorf("%s: %+v", c.items, m)
		}
	}
}
