package config

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/tensor"
)

const pipelineHead = `version: 1
device_types: [{name: local, cores: 8}]
workers: [{name: here}]
models: {repository: models}
`

// pipelineModels writes models of the right inputs and outputs; nothing here runs them.
func pipelineModels(t *testing.T, root string) {
	t.Helper()
	put := func(name string, g *onnxmodel.Graph) {
		if err := g.Write(root + "/models/" + name + "/1/model.onnx"); err != nil {
			t.Fatal(err)
		}
	}
	put("detector", onnxmodel.NewGraph("d").Input("image", onnxmodel.Uint8, onnxmodel.Symbolic, 1, 64, 64).Node("Find",
		[]string{"image"}, []string{"rects", "scores"}).
		Output("rects", onnxmodel.Float32, onnxmodel.Symbolic, 9, 4).Output("scores", onnxmodel.Float32,
		onnxmodel.Symbolic, 9))
	put("reader", onnxmodel.NewGraph("r").Input("patch", onnxmodel.Uint8, onnxmodel.Symbolic, 1, 28, 28).Node("Read",
		[]string{"patch"}, []string{"label"}).Output("label", onnxmodel.Int64, onnxmodel.Symbolic))
}

const scenesFile = pipelineHead + `apps:
  - name: scenes
    slo: {latency: 300ms}
    stages:
      - {name: read, variants: [{name: reader}], inputs: {patch: patches}}
      - name: detect
        variants: [{name: detector}]
        outputs: {rects: boxes}
        next: [{to: keep}]
      - {name: keep, function: nms, with: {iou: 0.4, most: 20}, outputs: {boxes: kept},
         next: [{to: cut, fan_out: 2.5, rows: kept}, {to: follow}]}
      - {name: cut, function: crop,
         with: {height: 28, width: 28, layout: nchw}, inputs: {boxes: kept}, next: [{to: read}]}
      - {name: follow, function: track, inputs: {boxes: kept}}
`

func TestPipeline(t *testing.T) {
	root := t.TempDir()
	pipelineModels(t, root)
	w, err := resolve(t, root, scenesFile)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for k, st := range w.Spec.Stages {
		v := st.Variants[0]
		kind := w.Variants[v].Model
		if f := w.Variants[v].Function; f != nil {
			kind = f.Name()
		}
		names = append(names, st.Name+" "+kind)
		if st.Stateful != (st.Name == "follow") {
			t.Errorf("stage %s: stateful %v", st.Name, st.Stateful)
		}
		if i := w.Stages[k]; i.Inputs == nil || i.Outputs == nil {
			t.Errorf("stage %s: %+v", st.Name, i)
		}
	}
	if want := []string{
		"detect detector", "keep nms", "cut crop", "read reader", "follow track",
	}; !slices.Equal(names, want) {
		t.Errorf("stages %v", names)
	}
	if e := w.Spec.Stages[1].Next[0]; e.Rows != "kept" || e.FanOut != 2.5 || e.To != 2 {
		t.Errorf("edge %+v", e)
	}
	a := w.Apps[0]
	if want := []tensor.Spec{
		{Name: "image", DType: tensor.Uint8, Shape: []int64{-1, 1, 64, 64}},
	}; !reflect.DeepEqual(a.Inputs, want) || !a.Batched {
		t.Errorf("requests %+v", a)
	}
	if want := "label INT64 [-1], ids INT64 [-1], ages INT64 [-1]"; show(a.Outputs) != want {
		t.Errorf("answers %s, want %s", show(a.Outputs), want)
	}
	// crop is measured with the image's shape from the request; nms gives the picture's number by its name.
	if want := "image UINT8 [-1,1,64,64], boxes FP32 [-1,4], image_index INT64 [-1]"; show(w.Stages[2].Inputs) != want {
		t.Errorf("crop takes %s, want %s", show(w.Stages[2].Inputs), want)
	}
	if v := w.Spec.Variants[1]; v.Name != "keep" || v.MaxBatch != defaultMaxBatch || v.Accuracy != 1 {
		t.Errorf("variant %+v", v)
	}
	if len(w.Warnings) > 0 || len(w.Placement) != 5 {
		t.Errorf("warnings %q, placement %+v", w.Warnings, w.Placement)
	}
}

// TestPipelineProblems breaks the pipeline in one place and expects an error for that place.
func TestPipelineProblems(t *testing.T) {
	root := t.TempDir()
	pipelineModels(t, root)
	for _, c := range []struct{ old, new, want string }{
		{
			"function: nms", "function: nsm",
			`sluice.yaml:14: apps[0].stages[2].function: there is no function "nsm" (did you mean "nms"?)`,
		},
		{
			"iou: 0.4", "ioo: 0.4",
			`apps[0].stages[2].with.ioo: is no option of nms: it has iou, score, most, across_classes (did you mean ` +
				`"iou"?)`,
		},
		{"iou: 0.4", "iou: 4", `apps[0].stages[2].with.iou: is "4", want a number from 0 to 1`},
		{
			"with: {height: 28, width: 28, layout: nchw}, ", "",
			`apps[0].stages[3].with.height: is missing: height of a result in pixels`,
		},
		{
			"function: nms", "function: nms, variants: [{name: reader}]",
			`apps[0].stages[2].function: give either variants, models that can do this stage, or a function`,
		},
		{
			"function: track", "with: {iou: 1}, variants: [{name: w, model: reader}]",
			`apps[0].stages[4].with: belongs to functions: there is none here`,
		},
		{
			"function: track, ", "",
			`apps[0].stages[4].variants: is missing: list the models that can do this stage, or name a function`,
		},
		{
			"function: nms", "stateful: true, function: nms",
			`apps[0].stages[2].stateful: is true, but function nms keeps nothing`,
		},
		{
			"function: track", "stateful: false, function: track",
			`apps[0].stages[4].stateful: is false, but function track keeps something`,
		},
		{
			"variants: [{name: detector}]", "stateful: true\n        variants: [{name: detector}]",
			`apps[0].stages[1].stateful: is true, but models that run in this process keep nothing`,
		},
		{
			"rows: kept", "rows: kep",
			`apps[0].stages[2].next[0].rows: there is no output of this stage "kep" (did you mean "kept"?)`,
		},
		{
			"rows: kept", "rows: ''",
			`apps[0].stages[2].next[0].rows: is empty: name the tensor whose rows become the items of "cut"`,
		},
		{
			"outputs: {boxes: kept}", "outputs: {box: kept}",
			`apps[0].stages[2].outputs.box: there is no output of function nms "box": there is boxes`,
		},
		{
			"inputs: {boxes: kept}, next", "inputs: {bxes: kept}, next",
			`apps[0].stages[3].inputs.bxes: there is no input of function crop "bxes" (did you mean "boxes"?)`,
		},
		{
			"outputs: {boxes: kept}", "outputs: {boxes: scores}",
			`apps[0].stages[2]: another output of the stage is called "scores", too`,
		},
		{
			"outputs: {boxes: kept}", "outputs: {boxes: ''}",
			`apps[0].stages[2].outputs.boxes: is "", want the name of a tensor`,
		},
		{
			"{patch: patches}", "{patch: kept}",
			`apps[0].stages[0].inputs.patch: tensor kept FP32 [-1,4] is not what the models take as patch UINT8 ` +
				`[-1,1,28,28]`,
		},
		{
			"height: 28", "height: 27",
			`apps[0].stages[0].inputs.patch: tensor patches UINT8 [-1,1,27,28] is not what the models take as patch ` +
				`UINT8 [-1,1,28,28]`,
		},
		{
			"{patch: patches}", "{path: patches}",
			`apps[0].stages[0].inputs.path: there is no input of the models of this stage "path" (did you mean ` +
				`"patch"?)`,
		},
		{
			"{rects: boxes}", "{rect: boxes}",
			`apps[0].stages[1].outputs.rect: there is no output of the models of this stage "rect" (did you mean ` +
				`"rects"?)`,
		},
		{
			"follow, function: track, inputs: {boxes: kept}", "follow, function: track, inputs: {boxes: patches}",
			`apps[0].stages[4].inputs.boxes: input "boxes" is tensor "patches", which stage "cut" gives, but no way ` +
				`leads from there to this stage`,
		},
		{
			"follow, function: track, inputs: {boxes: kept}", "follow, function: track, inputs: {boxes: scores}",
			`apps[0].stages[4]: function track: input "boxes" has shape [-1]`,
		},
		{"slo: {latency: 300ms}",
			"inputs: [{name: picture, datatype: UINT8, shape: [-1, 1, 64, 64]}]\n    slo: {latency: 300ms}",
			`apps[0].stages[1]: neither the request nor a stage before this one gives a tensor "image", which input ` +
				`"image" is: there is picture`},
		{
			"next: [{to: read}]", "next: [{to: read}, {to: detect}]",
			`apps[0].stages: every stage is fed by another: one must be the first`,
		},
		{
			"next: [{to: read}]", "next: [{to: read}, {to: keep}]",
			`apps[0].stages: stages feed each other in a circle: look at "read", "keep", "cut", "follow"`,
		},
		{"name: keep", "name: cut", `apps[0].stages[3].name: "cut" is already the name of apps[0].stages[2]`},
		{
			"{name: reader}", "{name: cut, model: reader}",
			`apps[0].stages[3].name: "cut" is already the name of apps[0].stages[0].variants[0]`,
		},
	} {
		text := strings.Replace(scenesFile, c.old, c.new, 1)
		if text == scenesFile {
			t.Fatalf("%q is not there", c.old)
		}
		f, err := Parse([]byte(text), root+"/sluice.yaml")
		if err == nil {
			_, err = f.Resolve()
		}
		var p Problems
		if !errors.As(err, &p) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n%v, want\n%s", c.new, err, c.want)
		}
	}
}

// TestTensorsOfTheRequest: tensors that no stage gives must come with requests, with a warning.
func TestTensorsOfTheRequest(t *testing.T) {
	root := t.TempDir()
	pipelineModels(t, root)
	changed := strings.Replace(scenesFile, "track, inputs: {boxes: kept}", "track, inputs: {boxes: kpt}", 1)
	w, err := resolve(t, root, changed)
	if err != nil {
		t.Fatal(err)
	}
	if got := show(w.Apps[0].Inputs); got != "image UINT8 [-1,1,64,64], kpt FP32 []" {
		t.Errorf("requests %s", got)
	}
	if want := []string{
		`apps[0]: no stage gives tensor "kpt", which stage "follow" takes: every request must bring it`,
	}; !slices.Equal(w.Warnings, want) {
		t.Errorf("warnings %q", w.Warnings)
	}
}

// TestFunctionsAlone: an app may consist of built-in functions only. It then needs no models, but must list its inputs.
func TestFunctionsAlone(t *testing.T) {
	head := strings.Replace(pipelineHead, "models: {repository: models}\n", "", 1) +
		"apps:\n  - name: patches\n    slo: {latency: 1s}\n"
	stages := "    stages: [{name: small, function: resize, with: {height: 8, width: 8}, next: [{to: cut}]}, {name: " +
		"cut, function: crop, with: {height: 4, width: 4}, next: [{to: best, rows: patches}]}, {name: best, " +
		"function: reshape, inputs: {tensor: patches}}]\n"
	_, err := resolve(t, t.TempDir(), head+stages)
	if want := `apps[0].inputs: is missing: stage "small" takes tensor "image" of the request, and cannot tell of ` +
		`which datatype it is`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	w, err := resolve(t, t.TempDir(),
		head+"    inputs: [{name: image, datatype: UINT8, shape: [-1, 9, 9, 3]}, {name: boxes, datatype: FP32, "+
			"shape: [-1, 4]}]\n"+stages)
	if err != nil {
		t.Fatal(err)
	}
	if w.Apps[0].Batched {
		t.Error("the rows of an image and its boxes are not both items")
	}
	if got := show(w.Apps[0].Outputs); got != "tensor UINT8 [-1,48]" {
		t.Errorf("answers %s", got)
	}
}

// TestOutputsOfRemoteModelsAreUnknown: functions then take them without a check.
func TestOutputsOfRemoteModelsAreUnknown(t *testing.T) {
	w, err := resolve(t, t.TempDir(), `version: 1
device_types: [{name: local, cores: 4}]
workers: [{name: far, backend: {kind: openinference, address: "h:1"}}]
apps:
  - name: a
    slo: {latency: 1s}
    stages:
      - {name: detect, variants: [{name: detector}], next: [{to: keep, fan_out: 2}]}
      - {name: keep, function: nms, next: [{to: cut, rows: boxes}]}
      - {name: cut, function: crop, with: {height: 4, width: 4}}
`)
	if err != nil {
		t.Fatal(err)
	}
	if i := w.Stages[1]; len(i.Inputs) != 2 || i.Outputs != nil || w.Apps[0].Inputs != nil || w.Apps[0].Outputs != nil {
		t.Errorf("%+v of %+v", i, w.Apps[0])
	}
	if len(w.Warnings) != 1 || !strings.Contains(w.Warnings[0],
		"apps[0].stages[0].next[0]: fan_out is 2 without rows") {
		t.Errorf("%q", w.Warnings)
	}
}
