package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/bounded"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/models/repository"
	"github.com/sluice-serving/sluice/serving"
)

// tritonRepository copies testdata/triton and writes the models that its files describe.
func tritonRepository(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "models"), os.DirFS("testdata/triton")); err != nil {
		t.Fatal(err)
	}
	const n = onnxmodel.Symbolic
	put := func(name string, g *onnxmodel.Graph) {
		if err := g.Write(filepath.Join(root, "models", name, "1", "model.onnx")); err != nil {
			t.Fatal(err)
		}
	}
	put("detector", onnxmodel.NewGraph("d").Input("image", onnxmodel.Uint8, n, 1, 64, 64).Node("Find",
		[]string{"image"}, []string{"patch", "scores", "LABEL"}).
		Output("patch", onnxmodel.Uint8, n, 1, 28, 28).Output("scores", onnxmodel.Float32, n, 9).Output("LABEL",
		onnxmodel.Float32, n, 2))
	put("reader", onnxmodel.NewGraph("r").Input("patch", onnxmodel.Uint8, n, 1, 28, 28).Node("Read", []string{"patch"},
		[]string{"label"}).Output("label", onnxmodel.Int64, n, 1))
	return root
}

func TestImportTriton(t *testing.T) {
	t.Chdir(tritonRepository(t))
	text, notes, err := importTriton("models", "sluice.yaml", Importing{}, machine{cores: 8})
	if err != nil {
		t.Fatal(err)
	}
	here, _ := os.Getwd()
	t.Chdir(packageDir)
	golden(t, "testdata/triton.yaml", string(text))
	t.Chdir(here)
	if err := os.WriteFile("sluice.yaml", text, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Load("sluice.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w, err := f.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for k, st := range w.Spec.Stages {
		for _, e := range st.Next {
			got = append(got, st.Name+" -> "+w.Spec.Stages[e.To].Name)
			if e.FanOut != 1 || e.Rows != "" {
				t.Errorf("edge %+v", e)
			}
		}
		for in, from := range w.Stages[k].Takes {
			got = append(got, from+" is "+in+" of "+st.Name)
		}
		for out, to := range w.Stages[k].Gives {
			got = append(got, out+" of "+st.Name+" is "+to)
		}
	}
	slices.Sort(got)
	want := []string{"FOUND is patch of reader", "LABEL of detector is detector.LABEL", "PICTURE is image of detector",
		"SCORES is tensor of answer-SCORES", "detector -> answer-SCORES",
		"detector -> reader", "label of reader is LABEL", "patch of detector is FOUND", "scores of detector is SCORES",
		"tensor of answer-SCORES is SCORES"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if a := w.Apps[0]; show(a.Inputs) != "PICTURE UINT8 [-1,1,64,64]" ||
		show(a.Outputs) != "LABEL INT64 [-1,1], SCORES FP32 [-1,9]" || !a.Batched {
		t.Errorf("%+v", a)
	}
	for _, i := range w.Placement {
		name := w.Spec.Stages[i.Stage].Name
		if slots := map[string]int{"reader": 2}[name]; i.Slots != max(slots, 1) ||
			i.Limit != map[string]int{"detector": 4}[name] {
			t.Errorf("placement of %s: %+v", name, i)
		}
	}
	for _, want := range []string{
		`ensemble "scenes": config.pbtxt: response_cache (line 26) is not read`,
	} {
		if !slices.ContainsFunc(notes, func(n string) bool {
			return strings.Contains(n, want)
		}) || !strings.Contains(string(text), want) {
			t.Errorf("notes %q lack %q", notes, want)
		}
	}
}

// packageDir is the working directory at the start.
var packageDir = func() string { d, _ := os.Getwd(); return d }()

func TestImportedPathsStartFromTheFile(t *testing.T) {
	root := tritonRepository(t)
	t.Chdir(root)
	for _, c := range []struct{ dir, out, want string }{
		{"models", filepath.Join("etc", "sluice.yaml"), "repository: ../models"}, {
			filepath.Join(root, "models"), "sluice.yaml", "repository: " + filepath.Join(root, "models"),
		},
	} {
		text, _, err := ImportTriton(c.dir, c.out, Importing{})
		if err != nil || !strings.Contains(string(text), c.want+"\n") {
			t.Errorf("%v, want %s in\n%s", err, c.want, text)
		}
	}
}

// TestSettingsWithoutACounterpart breaks the ensemble in one place.
func TestSettingsWithoutACounterpart(t *testing.T) {
	for _, c := range []struct{ file, old, new, want string }{
		{
			"scenes", `model_name: "reader"`, `model_name: "raeder"`,
			`ensemble "scenes" is left out: step[0]: model "raeder": not found in`,
		},
		{
			"scenes", `model_name: "reader"`, `model_name: "x/../reader"`,
			`step[0]: model name "x/../reader" holds '/', which is not allowed`,
		},
		{"scenes", `model_name: "reader"`, `model_name: "outside"`, `ensemble "scenes" is left out: step[0]: `},
		{
			"scenes", `model_name: "reader"`, `model_name: "scenes"`,
			`step[0]: ensemble "scenes" runs itself: scenes > scenes`,
		},
		{"scenes", `model_version: 1`, `model_version: 7`, `version "7": not found or not served`},
		{"scenes", `value: "FOUND" }
      output_map { key: "label"`, `value: "FUND" }
      output_map { key: "label"`,
			`step[0]: input_map: neither a request nor a step gives tensor "FUND" (did you mean "FOUND"?)`},
		{
			"scenes", `input_map { key: "patch"`, `input_map { key: "path"`,
			`step[0]: input_map: input "patch" of model "reader" is not given`,
		},
		{
			"scenes", `input_map { key: "patch" value: "FOUND" }`,
			`input_map { key: "patch" value: "FOUND" } input_map { key: "more" value: "FOUND" }`,
			`step[0]: input_map: "more" is no input of model "reader", which has patch`,
		},
		{
			"scenes", `output_map { key: "label"`, `output_map { key: "lable"`,
			`step[0]: output_map: "lable" is no output of model "reader", which has label`,
		},
		{
			"scenes", `output_map { key: "label" value: "LABEL" }`, `output_map { key: "label" value: "FOUND" }`,
			`step[1]: output_map: tensor "FOUND" is given twice`,
		},
		{
			"scenes", `key: "image" value: "PICTURE"`, `key: "image" value: "LABEL"`,
			`its steps wait for each other: look at "reader" or "detector"`,
		},
		{
			"scenes", `{ name: "SCORES" data_type`, `{ name: "SCORE" data_type`,
			`output[1]: no step gives tensor "SCORE"`,
		},
		{
			"scenes", `dims: [ 9 ]`, `dims: [ -1, -1 ]`,
			`output[1]: tensor "SCORES" has 3 dimensions in the ensemble, and 2 as "scores" of model "detector"`,
		},
		{
			"reader", `instance_group`, `sequence_batching { control_input [ { name: "START" } ] } instance_group`,
			`sequence_batching: input "START": the model file has no such input`,
		},
		{"reader", `KIND_CPU`, `KIND_GPU`, `model "reader": instance_group asks for GPUs`},
		{"reader", `count: 2`, `count: -2`, `instance_group[0].count is -2`},
		{"detector", `dims: [ 1, 28, 28 ]`, `dims: [ 1, 27, 28 ]`, `model "detector"`},
	} {
		root := tritonRepository(t)
		_ = os.Symlink("/etc", filepath.Join(root, "models", "outside"))
		path := filepath.Join(root, "models", c.file, "config.pbtxt")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(data), c.old, c.new, 1)
		if text == string(data) {
			t.Fatalf("%q is not there", c.old)
		}
		write(t, root, filepath.Join("models", c.file, "config.pbtxt"), text)
		_, notes, err := ImportTriton(filepath.Join(root, "models"), filepath.Join(root, "sluice.yaml"), Importing{})
		if all := fmt.Sprint(notes, err); !strings.Contains(all, c.want) {
			t.Errorf("%s:\n%s\nwant %s", c.new, all, c.want)
		}
	}
	if _, _, err := ImportTriton(t.TempDir(), "sluice.yaml", Importing{}); err == nil ||
		!strings.Contains(err.Error(), "nothing of model repository") {
		t.Errorf("an empty repository: %v", err)
	}
}

// TestModelsThatTritonMustRun: steps that are not ONNX make the whole pipeline use a Triton server. Two steps that
// could begin together run one after the other. A single step keeps the ensemble's names.
func TestModelsThatTritonMustRun(t *testing.T) {
	root := t.TempDir()
	step := func(model, in, out string) string {
		return fmt.Sprintf(
			`step { model_name: %q model_version: -1 input_map { key: "x" value: %q } output_map { key: "y" value: `+
				`%q } }`, model, in, out)
	}
	whole := func(outs string, steps ...string) string {
		return `platform: "ensemble" input { name: "IN" data_type: TYPE_FP32 dims: [ 3 ] } output [` + outs +
			`] ensemble_scheduling { ` + strings.Join(steps, " ") + ` }`
	}
	out := func(name string) string { return `{ name: "` + name + `" data_type: TYPE_FP32 dims: [ 3 ] }` }
	write(t, root, "m/py/config.pbtxt",
		`backend: "python" max_batch_size: 4 input { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } output { name: "y" `+
			`data_type: TYPE_FP32 dims: [ 3 ] }`)
	write(t, root, "m/both/config.pbtxt", whole(out("B")+","+out("C"), step("py", "IN", "B"), step("py", "IN", "C"),
		step("py", "C", "D")))
	write(t, root, "m/one/config.pbtxt", whole(out("OUT"), step("py", "IN", "OUT")))
	// no tensor of the request is called x
	write(t, root, "m/pass/config.pbtxt", whole(out("y"), strings.Replace(step("py", "x", "y"), `"IN"`, `"x"`, 1)))
	text, notes, err := ImportTriton(filepath.Join(root, "m"), filepath.Join(root, "sluice.yaml"), Importing{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse(text, filepath.Join(root, "sluice.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := f.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, st := range w.Spec.Stages {
		for _, e := range st.Next {
			got = append(got, w.Spec.Apps[st.App].Name+": "+st.Name+" -> "+w.Spec.Stages[e.To].Name)
		}
	}
	if want := []string{
		"both: py -> py-2", "both: py -> answer-B", "both: py-2 -> py-3", "both: py-2 -> answer-C",
		"one: py -> answer-OUT",
	}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if b := w.Backends[0]; b.Kind != "openinference" {
		t.Errorf("%+v", b)
	}
	for _, want := range []string{
		`steps "py" and "py-2" could begin together`, `model "py" is not run by ONNX Runtime`,
		`ensemble "pass" is left out: step[0]: input_map: neither a request nor a step gives tensor "x"`,
	} {
		if !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, want) }) {
			t.Errorf("notes %q lack %q", notes, want)
		}
	}
}

// FuzzEnsemble imports ensembles of any text over two models. Nothing may panic. The result is a file that can be read,
// or an error with a reason.
func FuzzEnsemble(f *testing.F) {
	data, err := os.ReadFile("testdata/triton/scenes/config.pbtxt")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(data))
	f.Add(`input { name: "I" data_type: TYPE_FP32 dims: 3 } output { name: "O" data_type: TYPE_FP32 dims: 3 } ` +
		`ensemble_scheduling { step { model_name: "a" input_map { key: "x" value: "I" } output_map { key: "y" value: ` +
		`"O" } } }`)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		defer bounded.Watch(t, bounded.Fuzz(len(text)))()
		c, unknown, err := repository.Parse([]byte(text))
		if err != nil || c.EnsembleScheduling == nil {
			return
		}
		repo, err := repository.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = repo.Close() }()
		models := map[string]*member{}
		for _, name := range []string{"a", "reader", "detector"} {
			m, _, err := repository.Parse([]byte(`max_batch_size: 4`))
			if err != nil {
				t.Fatal(err)
			}
			models[name] = &member{Model: &repository.Model{Name: name, Config: m}}
		}
		models["a"].inputs, models["a"].outputs = []string{"x"}, []string{"y", "z"}
		im := &importer{repo: repo, members: models}
		app, err := im.ensemble(&repository.Model{Name: "fuzzed", Config: c, Unknown: unknown})
		if err != nil {
			return
		}
		im.add(app)
		var b bytes.Buffer
		im.write(&b, "models", machine{cores: 1})
		file, err := Parse(b.Bytes(), "x.yaml")
		if err != nil {
			var p Problems
			if !errors.As(err, &p) {
				t.Fatal(err)
			}
			return
		}
		file.Models.Repository = ""
		w, err := file.Resolve()
		var p Problems
		if err != nil && !errors.As(err, &p) {
			t.Fatalf("%v\n%s", err, b.String())
		}
		if err == nil && len(w.Spec.Stages) < len(c.EnsembleScheduling.Step) {
			t.Errorf("%d stages of %d steps", len(w.Spec.Stages), len(c.EnsembleScheduling.Step))
		}
	})
}

// Each model's dynamic_batching becomes rules of its own queue.
func TestImportedQueues(t *testing.T) {
	dir := t.TempDir()
	for name, batching := range map[string]string{
		"plain":  "",
		"delays": "dynamic_batching {max_queue_delay_microseconds: 500 preferred_batch_size: [4, 2]}",
		"levels": `dynamic_batching {
			priority_levels: 2 default_priority_level: 1
			default_queue_policy {timeout_action: DELAY default_timeout_microseconds: 100000 max_queue_size: 3}
			priority_queue_policy {key: 2 value: {allow_timeout_override: true max_queue_size: 2000}}}`,
	} {
		if err := onnxmodel.Identity(onnxmodel.Float32, onnxmodel.Symbolic, 2).Write(
			filepath.Join(dir, name, "1", "model.onnx")); err != nil {
			t.Fatal(err)
		}
		text := "max_batch_size: 8\n" + batching
		if err := os.WriteFile(filepath.Join(dir, name, "config.pbtxt"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, notes, err := ImportTriton(dir, filepath.Join(dir, "sluice.yaml"), Importing{})
	if err != nil || len(notes) > 0 {
		t.Fatalf("%v, %q", err, notes)
	}
	f, err := Parse(text, filepath.Join(dir, "sluice.yaml"))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	spec, err := f.Spec()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]*serving.QueueRules{
		"plain":  nil,
		"delays": {Delay: 500 * time.Microsecond, Preferred: []int{2, 4}},
		"levels": {Default: 1, Levels: []serving.QueueLevel{
			{Timeout: 100 * time.Millisecond, Defers: true, Limit: 3}, {Override: true, Limit: 2000},
		}},
	}
	for a := range spec.Apps {
		name := spec.Apps[a].Name
		if got := spec.Stages[spec.Source(serving.AppID(a))].Queue; !reflect.DeepEqual(got, want[name]) {
			t.Errorf("%s: %+v, want %+v", name, got, want[name])
		}
		// Nobody asked for the objective, and where the author says how long queries wait it would give none up anyhow.
		if x := &spec.Apps[a]; x.Late != serving.ServeLate || !x.SLO.Proposed {
			t.Errorf("%s: late policy %v, objective %+v, want late answers under a proposed one", name, x.Late, x.SLO)
		}
	}
	if a := &spec.Apps[1]; a.QueueLimit != 2003 {
		t.Errorf("%s: %d may wait", a.Name, a.QueueLimit)
	}
}

// An ensemble whose tensors do not fit its models is left out. The rest is served.
func TestWhatDoesNotFitIsLeftOutByName(t *testing.T) {
	dir := t.TempDir()
	put := func(name, config string) {
		if err := os.MkdirAll(filepath.Join(dir, name, "1"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "config.pbtxt"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("plain", `platform: "onnxruntime_onnx" max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }`)
	if err := onnxmodel.NewGraph("g").Input("x", onnxmodel.Float32, -1, 4).Node("Neg", []string{"x"}, []string{"y"}).
		Output("y", onnxmodel.Float32, -1, 4).Write(filepath.Join(dir, "plain", "1", "model.onnx")); err != nil {
		t.Fatal(err)
	}
	put("whole", `platform: "ensemble" max_batch_size: 0
input { name: "x" data_type: TYPE_FP32 dims: [ 5 ] } output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }
ensemble_scheduling { step { model_name: "plain" input_map { key: "x" value: "x" }
  output_map { key: "y" value: "y" } } }`)
	text, notes, err := ImportTriton(dir, filepath.Join(dir, "sluice.yaml"), Importing{Here: true})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, `model "whole" is left out: `) }) {
		t.Errorf("notes do not name the ensemble: %q", notes)
	}
	f, err := Parse(text, filepath.Join(dir, "sluice.yaml"))
	if err != nil || len(f.Apps) != 1 || f.Apps[0].Name != "plain" {
		t.Errorf("apps are %+v, %v", f, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "plain")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ImportTriton(dir, filepath.Join(dir, "sluice.yaml"), Importing{Here: true}); err == nil {
		t.Error("a repository of which nothing can be served was imported")
	}
}
