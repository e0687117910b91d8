package zoo

import "github.com/sluice-serving/sluice/internal/models/onnxmodel"

// recurrent adds a recurrent layer with so many gates and returns the last state of every direction, [directions, N,
// hidden], and the states of all steps, [steps, directions, N, hidden].
func (b *net) recurrent(op, x string, in, hidden, gates, directions int64) (last, all string) {
	direction := "forward"
	if directions == 2 {
		direction = "bidirectional"
	}
	all, last = b.name("v"), b.name("v")
	b.Node(op, []string{
		x, b.weights(in, directions, gates*hidden, in), b.weights(hidden, directions, gates*hidden, hidden),
	}, []string{all, last},
		onnxmodel.AttrInt("hidden_size", hidden), onnxmodel.AttrString("direction", direction))
	return last, all
}

func (b *net) steps(x string) string {
	return b.op("Transpose", []string{x}, onnxmodel.AttrInts("perm", 1, 0, 2))
}

func lstm(b *net) {
	b.Input("input", onnxmodel.Float32, onnxmodel.Symbolic, 24, 64)
	_, all := b.recurrent("LSTM", b.steps("input"), 64, 128, 4, 1)
	last, _ := b.recurrent("LSTM", b.op("Squeeze", []string{all, b.ints(1)}), 128, 128, 4, 1)
	b.classify(b.op("Squeeze", []string{last, b.ints(0)}), 128, 20)
}

func gru(b *net) {
	b.Input("input", onnxmodel.Float32, onnxmodel.Symbolic, 32, 48)
	last, _ := b.recurrent("GRU", b.steps("input"), 48, 96, 3, 2)
	both := b.op("Transpose", []string{last}, onnxmodel.AttrInts("perm", 1, 0, 2))
	b.classify(b.op("Reshape", []string{both, b.ints(0, -1)}), 192, 20)
}

func textcnn(b *net) {
	const words, width, length = 4000, 64, 69
	b.Input("input", onnxmodel.Int64, onnxmodel.Symbolic, length)
	x := b.op("Gather", []string{b.weights(width, words, width), "input"}, onnxmodel.AttrInt("axis", 0))
	x = b.op("Transpose", []string{x}, onnxmodel.AttrInts("perm", 0, 2, 1))
	var found []string
	for _, size := range []int64{3, 4, 5} {
		y := b.relu(b.conv1(x, width, 96, size, 1))
		found = append(found, b.op("ReduceMax", []string{y}, onnxmodel.AttrInts("axes", 2),
			onnxmodel.AttrInt("keepdims", 0)))
	}
	b.classify(b.op("Concat", found, onnxmodel.AttrInt("axis", 1)), 3*96, 20)
}

func transformer(b *net) {
	const length, width, heads, inner = 32, 128, 4, 512
	b.Input("input", onnxmodel.Float32, onnxmodel.Symbolic, length, width)
	linear := func(x string, in, out int64) string {
		return b.op("Add", []string{b.op("MatMul", []string{x, b.weights(in, in, out)}), b.same(0.01, out)})
	}
	layerNorm := func(x string) string {
		return b.op("LayerNormalization", []string{
			x, b.same(1, width), b.same(0.01, width),
		}, onnxmodel.AttrInt("axis", -1))
	}
	split := func(x string, perm ...int64) string {
		return b.op("Transpose", []string{
			b.op("Reshape", []string{x, b.ints(0, length, heads, width/heads)}),
		}, onnxmodel.AttrInts("perm", perm...))
	}
	x := b.op("Add", []string{"input", b.weights(width, 1, length, width)})
	for range 2 {
		q, k, v := split(linear(x, width, width), 0, 2, 1, 3), split(linear(x, width, width), 0, 2, 3, 1),
			split(linear(x, width, width), 0, 2, 1, 3)
		score := b.op("Div", []string{b.op("MatMul", []string{q, k}), b.scalar(5.656854)})
		score = b.op("Softmax", []string{score}, onnxmodel.AttrInt("axis", -1))
		mixed := b.op("Transpose", []string{b.op("MatMul", []string{score, v})}, onnxmodel.AttrInts("perm", 0, 2, 1, 3))
		mixed = b.op("Reshape", []string{mixed, b.ints(0, length, width)})
		x = layerNorm(b.op("Add", []string{linear(mixed, width, width), x}))
		y := b.gelu(linear(x, width, inner))
		x = layerNorm(b.op("Add", []string{linear(y, inner, width), x}))
	}
	mean := b.op("ReduceMean", []string{x}, onnxmodel.AttrInts("axes", 1), onnxmodel.AttrInt("keepdims", 0))
	b.classify(mean, width, 10)
}

// gelu adds a GELU in operators of the standard set, as exporters do.
func (b *net) gelu(x string) string {
	y := b.op("Erf", []string{b.op("Div", []string{x, b.scalar(1.4142135)})})
	y = b.op("Mul", []string{x, b.op("Add", []string{y, b.scalar(1)})})
	return b.op("Mul", []string{y, b.scalar(0.5)})
}
