package main

import (
	"fmt"
	"strings"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// qaModels stand in for models that Triton's QA cases call and that are made when its container is built: all give back
// what they get.
func qaModels() []standIn {
	const text, float, half = onnxmodel.String, onnxmodel.Float32, onnxmodel.Float16
	return []standIn{
		same("custom_zero_1_float32", "FP32", float, 32, 1, batch),
		same("custom_nobatch_zero_1_float32", "FP32", float, 0, 1, batch, batch),
		same("onnx_zero_1_float32", "FP32", float, 8, 1, batch),
		same("onnx_zero_1_float16", "FP16", half, 8, 1, batch, batch),
		same("onnx_zero_1_object", "STRING", text, 8, 1, batch),
		same("onnx_zero_1_object_1_element", "STRING", text, 8, 1, 1),
		same("onnx_zero_3_float32", "FP32", float, 8, 3, batch),
		same("onnx_nobatch_zero_1_object", "STRING", text, 0, 1, batch),
		same("identity_fp32", "FP32", float, 8, 1, batch),
		same("identity_bytes", "STRING", text, 8, 1, batch),
		same("string_identity", "STRING", text, 0, 1, batch),
		same("pt_identity", "FP32", float, 8, 1, 8),
		same("input_all_required", "FP32", float, 0, 3, 1),
		scalar("onnx_scalar_1dim", `max_batch_size: 0`, `dims: [ 1 ] reshape { shape: [ ] }`),
		scalar("onnx_scalar_2dim", `max_batch_size: 8`, `dims: [ 1 ] reshape { shape: [ ] }`, batch),
	}
}

// same gives its inputs back.
func same(name, kind string, d onnxmodel.DType, maxBatch, inputs int, dims ...int64) standIn {
	var config strings.Builder
	fmt.Fprintf(&config, "max_batch_size: %d\n", maxBatch)
	shape := dims
	if maxBatch > 0 {
		shape = append([]int64{batch}, dims...)
	}
	g := onnxmodel.NewGraph("same")
	for k := range inputs {
		in, out := fmt.Sprint("INPUT", k), fmt.Sprint("OUTPUT", k)
		g.Input(in, d, shape...).Node("Identity", []string{in}, []string{out}).Output(out, d, shape...)
		list := strings.Trim(strings.ReplaceAll(fmt.Sprint(dims), " ", ", "), "[]")
		fmt.Fprintf(&config, "input { name: %q data_type: TYPE_%s dims: [ %s ] }\n", in, kind, list)
		fmt.Fprintf(&config, "output { name: %q data_type: TYPE_%s dims: [ %s ] }\n", out, kind, list)
	}
	return standIn{name, config.String(), g, 0}
}

// scalar gives a number back that has no dimension, but for that of the batch.
func scalar(name, config, dims string, shape ...int64) standIn {
	config += "\ninput { name: \"INPUT\" data_type: TYPE_FP32 " + dims + " }\n" +
		"output { name: \"OUTPUT\" data_type: TYPE_FP32 " + dims + " }\n"
	return standIn{name, config, onnxmodel.NewGraph("scalar").Input("INPUT", onnxmodel.Float32, shape...).
		Node("Identity", []string{"INPUT"}, []string{"OUTPUT"}).Output("OUTPUT", onnxmodel.Float32, shape...), 0}
}
