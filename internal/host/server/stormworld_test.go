package server

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

const stormWorld = `
version: 1
store: data
device_types: [{name: local, cores: 2}]
workers: [{name: here, device_type: local}, {name: there, device_type: local}]
models: {repository: models, control: explicit}
server: {not_ready: 0s, http: "127.0.0.1:8000", grpc: "127.0.0.1:8001", admin: "127.0.0.1:8002"}
system: {name: %s}
`

// sumNumber is what the model with a state adds for each query of a sequence.
const sumNumber = 7

// addWorld writes a configuration with its models: two that add a number, an ensemble of one that it runs twice, and
// one that adds up the queries of a sequence.
func (w *storm) addWorld() {
	models := filepath.Join(w.dir, "models")
	for k := range stormNames {
		for _, kind := range []string{"m", "f"} {
			w.names[fmt.Sprint(kind, k)] = &stormName{turn: make(chan struct{}, 1), numbers: []int{gone}}
		}
		must(addModel(filepath.Join(models, fmt.Sprint("m", k), "1", "model.onnx"), 0))
	}
	w.addOthers(models)
	world := fmt.Sprintf(stormWorld, w.script.system)
	if w.script.journal {
		world += "telemetry: {journal: journal}\n"
	}
	must(os.WriteFile(filepath.Join(w.dir, "sluice.yaml"), []byte(world), 0o600))
}

func (w *storm) addOthers(models string) {
	must(addModel(filepath.Join(models, "p0", "1", "model.onnx"), 0))
	must(os.MkdirAll(filepath.Join(models, "e0", "1"), 0o755))
	const tensors = `max_batch_size: 4
input [{name: "x" data_type: TYPE_FP32 dims: [2]}] output [{name: "y" data_type: TYPE_FP32 dims: [2]}]
`
	must(os.WriteFile(filepath.Join(models, "e0", "config.pbtxt"), []byte(`platform: "ensemble" `+tensors+`
ensemble_scheduling {step [
  {model_name: "p0" model_version: -1 input_map {key: "x" value: "x"} output_map {key: "y" value: "h"}},
  {model_name: "p0" model_version: -1 input_map {key: "x" value: "h"} output_map {key: "y" value: "y"}}]}
`), 0o600))
	must(os.MkdirAll(filepath.Join(models, "s0", "1"), 0o755))
	must(os.WriteFile(filepath.Join(models, "s0", "config.pbtxt"), []byte(tensors+`sequence_batching {
  max_sequence_idle_microseconds: 60000000
  state {input_name: "before" output_name: "after" data_type: TYPE_FP32 dims: 2 initial_state: {
    name: "none" data_type: TYPE_FP32 dims: 2 zero_data: true}}}
`), 0o600))
	must(onnxmodel.NewGraph("sum").Input("x", onnxmodel.Float32, onnxmodel.Symbolic, 2).
		Input("before", onnxmodel.Float32, onnxmodel.Symbolic, 2).
		Initializer("number", []float32{sumNumber}, 1).Node("Add", []string{"x", "number"}, []string{"now"}).
		Node("Add", []string{"now", "before"}, []string{"y"}).Node("Identity", []string{"y"}, []string{"after"}).
		Output("y", onnxmodel.Float32, onnxmodel.Symbolic, 2).Output("after", onnxmodel.Float32, onnxmodel.Symbolic, 2).
		Write(filepath.Join(models, "s0", "1", "model.onnx")))
	for _, name := range []string{"e0", "s0"} {
		w.names[name] = &stormName{turn: make(chan struct{}, 1), numbers: []int{gone}}
	}
	w.names["s0"].file = sumNumber
}
