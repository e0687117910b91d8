// Program clients writes models that stand in for those that the published example clients of Triton ask for and that
// no package has: the same names, tensors and configurations, with small graphs. scripts/clients.sh,
// scripts/clients-grpc.sh, scripts/clients-qa.sh and scripts/onnx-suite.sh call it.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// standIn is a model of the repository; one without a graph is an ensemble.
type standIn struct {
	name, config string
	graph        *onnxmodel.Graph
	labels       int // classes to name; 0 for none
}

func weights(n int) []float32 {
	out := make([]float32, n)
	for k := range out {
		out[k] = float32(k*7919%1000)/1000 - 0.5
	}
	return out
}

const batch = onnxmodel.Symbolic

func models() []standIn {
	return []standIn{
		{"densenet_onnx", `max_batch_size: 0
input { name: "data_0" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, 224, 224 ]
  reshape { shape: [ 1, 3, 224, 224 ] } }
output { name: "fc6_1" data_type: TYPE_FP32 dims: [ 1000 ] reshape { shape: [ 1, 1000, 1, 1 ] }
  label_filename: "labels.txt" }`,
			onnxmodel.NewGraph("densenet").Input("data_0", onnxmodel.Float32, 1, 3, 224, 224).
				Initializer("w", weights(3000), 1000, 3, 1, 1).
				Node("GlobalAveragePool", []string{"data_0"}, []string{"mean"}).
				Node("Conv", []string{"mean", "w"}, []string{"fc6_1"}).
				Output("fc6_1", onnxmodel.Float32, 1, 1000, 1, 1), 1000},
		{"simple_identity", `max_batch_size: 8
input { name: "INPUT0" data_type: TYPE_STRING dims: [ -1 ] }
output { name: "OUTPUT0" data_type: TYPE_STRING dims: [ -1 ] }`,
			onnxmodel.NewGraph("identity").Input("INPUT0", onnxmodel.String, batch, batch).
				Node("Identity", []string{"INPUT0"}, []string{"OUTPUT0"}).
				Output("OUTPUT0", onnxmodel.String, batch, batch), 0},
		{"custom_identity_int32", `max_batch_size: 8
input { name: "INPUT0" data_type: TYPE_INT32 dims: [ -1 ] }
output { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ -1 ] }`,
			onnxmodel.NewGraph("identity").Input("INPUT0", onnxmodel.Int32, batch, batch).
				Node("Identity", []string{"INPUT0"}, []string{"OUTPUT0"}).
				Output("OUTPUT0", onnxmodel.Int32, batch, batch), 0},
		{"preprocess", `max_batch_size: 8
input { name: "INPUT" data_type: TYPE_STRING dims: [ 1 ] }
output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ 1 ] }`,
			onnxmodel.NewGraph("preprocess").Input("INPUT", onnxmodel.String, batch, 1).
				Node("Shape", []string{"INPUT"}, []string{"shape"}).
				Node("ConstantOfShape", []string{"shape"}, []string{"zero"}).
				Node("Cos", []string{"zero"}, []string{"OUTPUT"}).
				Output("OUTPUT", onnxmodel.Float32, batch, 1), 0},
		{"classify", `max_batch_size: 8
input { name: "INPUT" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "SCORES" data_type: TYPE_FP32 dims: [ 1000 ] label_filename: "labels.txt" }`,
			onnxmodel.NewGraph("classify").Input("INPUT", onnxmodel.Float32, batch, 1).
				Initializer("w", weights(1000), 1, 1000).
				Node("MatMul", []string{"INPUT", "w"}, []string{"SCORES"}).
				Output("SCORES", onnxmodel.Float32, batch, 1000), 1000},
		{"preprocess_inception_ensemble", `platform: "ensemble" max_batch_size: 8
input { name: "INPUT" data_type: TYPE_STRING dims: [ 1 ] }
output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ 1000 ] }
ensemble_scheduling {
  step { model_name: "preprocess" model_version: -1 input_map { key: "INPUT" value: "INPUT" }
    output_map { key: "OUTPUT" value: "picture" } }
  step { model_name: "classify" model_version: -1 input_map { key: "INPUT" value: "picture" }
    output_map { key: "SCORES" value: "OUTPUT" } }
}`, nil, 0},
	}
}

// simple is the model of the clients in other languages. Triton's repository has one of its own for those in Python.
func simple() standIn {
	return standIn{"simple", `max_batch_size: 8
input [ { name: "INPUT0" data_type: TYPE_INT32 dims: [ 16 ] }, { name: "INPUT1" data_type: TYPE_INT32 dims: [ 16 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 16 ] },
  { name: "OUTPUT1" data_type: TYPE_INT32 dims: [ 16 ] } ]`,
		onnxmodel.NewGraph("simple").Input("INPUT0", onnxmodel.Int32, batch, 16).
			Input("INPUT1", onnxmodel.Int32, batch, 16).
			Node("Add", []string{"INPUT0", "INPUT1"}, []string{"OUTPUT0"}).
			Node("Sub", []string{"INPUT0", "INPUT1"}, []string{"OUTPUT1"}).
			Output("OUTPUT0", onnxmodel.Int32, batch, 16).Output("OUTPUT1", onnxmodel.Int32, batch, 16), 0}
}

func write(root string, list []standIn) error {
	for _, m := range list {
		dir := filepath.Join(root, m.name)
		if err := os.MkdirAll(filepath.Join(dir, "1"), 0o755); err != nil {
			return err
		}
		if m.graph != nil {
			if err := m.graph.Write(filepath.Join(dir, "1", "model.onnx")); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "config.pbtxt"), []byte(m.config), 0o644); err != nil {
			return err
		}
		var labels strings.Builder
		for k := range m.labels {
			fmt.Fprintf(&labels, "CLASS %d\n", k)
		}
		if m.labels == 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "labels.txt"), []byte(labels.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	var err error
	switch {
	case len(os.Args) == 2:
		err = write(os.Args[1], models())
	case len(os.Args) == 3 && os.Args[1] == "repeat":
		err = serveRepeat(os.Args[2])
	case len(os.Args) == 4 && os.Args[1] == "identity":
		err = serveIdentity(os.Args[2], os.Args[3])
	case len(os.Args) == 3 && os.Args[2] == "simple":
		err = write(os.Args[1], []standIn{simple()})
	case len(os.Args) == 3 && os.Args[2] == "qa":
		err = write(os.Args[1], qaModels())
	case len(os.Args) == 3 && os.Args[2] == "nops":
		err = replaceNops(os.Args[1])
	case len(os.Args) == 3 && os.Args[2] == "messages":
		err = messages(os.Args[1])
	default:
		fmt.Fprintln(os.Stderr, "usage: clients FOLDER [simple | qa | nops] | FILE messages | repeat ADDRESS | "+
			"identity ADDRESS DELAY")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
