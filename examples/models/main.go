// Program models writes small ONNX files for the examples, into the folder beside it or into a given one. They learnt
// nothing: what they answer is a weighted sum of what they get.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// models are the examples' models: inputs of a length, and a number of outputs.
var models = []struct {
	name        string
	from, to    int64
	input, said string
}{
	{"digits", 784, 10, "image", "scores"},
	{"classify", 64, 4, "features", "scores"},
	{"ranking", 64, 1, "features", "score"},
	{"resnet18", 768, 10, "image", "scores"},
	{"resnet152", 768, 10, "image", "scores"},
}

func weights(n int64) []float32 {
	out := make([]float32, n)
	for k := range out {
		out[k] = float32(k*7919%1000)/1000 - 0.5
	}
	return out
}

// write writes every model to ROOT/NAME/1/model.onnx.
func write(root string) error {
	for _, m := range models {
		path := filepath.Join(root, m.name, "1", "model.onnx")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		g := onnxmodel.NewGraph(m.name).Input(m.input, onnxmodel.Float32, onnxmodel.Symbolic, m.from).
			Initializer("w", weights(m.from*m.to), m.from, m.to).
			Node("MatMul", []string{m.input, "w"}, []string{m.said}).
			Output(m.said, onnxmodel.Float32, onnxmodel.Symbolic, m.to)
		if err := g.Write(path); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	root := filepath.Join("examples", "models")
	if len(os.Args) == 2 {
		root = os.Args[1]
	}
	if err := write(root); err != nil {
		fmt.Fprintln(os.Stderr, "examples/models: run it in the root of the repository, or name a folder:", err)
		os.Exit(1)
	}
}
