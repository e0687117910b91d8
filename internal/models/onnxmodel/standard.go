package onnxmodel

// Identity returns a graph that gives its "input" back as "output", unchanged, for any element type and shape.
func Identity(d DType, dims ...int64) *Graph {
	return NewGraph("identity").
		Input("input", d, dims...).
		Node("Identity", []string{"input"}, []string{"output"}).
		Output("output", d, dims...)
}

// Add returns a graph with inputs "a" and "b" and output "sum". ONNX Runtime can add Int32, Int64, Float32 and Float64
// on a CPU.
func Add(d DType, dims ...int64) *Graph {
	return NewGraph("add").
		Input("a", d, dims...).Input("b", d, dims...).
		Node("Add", []string{"a", "b"}, []string{"sum"}).
		Output("sum", d, dims...)
}
