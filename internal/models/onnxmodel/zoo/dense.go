package zoo

import "github.com/sluice-serving/sluice/internal/models/onnxmodel"

func mlp(b *net) {
	b.Input("input", onnxmodel.Float32, onnxmodel.Symbolic, 784)
	x := b.relu(b.dense("input", 784, 512))
	x = b.relu(b.dense(x, 512, 512))
	b.classify(b.op("Tanh", []string{b.dense(x, 512, 256)}), 256, 10)
}

// recommender looks eight ids up, maps the numbers to one more vector, and feeds the products of all pairs of vectors
// to dense layers, as recommendation models for advertisements do.
func recommender(b *net) {
	const ids, words, width = 8, 5000, 32
	b.Input("numbers", onnxmodel.Float32, onnxmodel.Symbolic, 13)
	b.Input("ids", onnxmodel.Int64, onnxmodel.Symbolic, ids)
	bottom := b.relu(b.dense(b.relu(b.dense("numbers", 13, 256)), 256, width))
	vectors := []string{b.op("Unsqueeze", []string{bottom, b.ints(1)})}
	for i := range int64(ids) {
		id := b.op("Slice", []string{"ids", b.ints(i), b.ints(i + 1), b.ints(1)})
		vectors = append(vectors, b.op("Gather", []string{b.weights(width, words, width), id},
			onnxmodel.AttrInt("axis", 0)))
	}
	all := b.op("Concat", vectors, onnxmodel.AttrInt("axis", 1))
	pairs := b.op("MatMul", []string{all, b.op("Transpose", []string{all}, onnxmodel.AttrInts("perm", 0, 2, 1))})
	flat := b.op("Flatten", []string{pairs}, onnxmodel.AttrInt("axis", 1))
	x := b.op("Concat", []string{bottom, flat}, onnxmodel.AttrInt("axis", 1))
	x = b.relu(b.dense(x, width+(ids+1)*(ids+1), 512))
	x = b.relu(b.dense(x, 512, 256))
	b.Node("Sigmoid", []string{b.dense(x, 256, 1)}, []string{"output"})
	b.Output("output", onnxmodel.Float32, onnxmodel.Symbolic, 1)
}
