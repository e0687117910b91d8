// Package zoo builds small neural networks of the kinds that are served, with random weights. Their latencies are
// realistic; their outputs have no meaning.
package zoo

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// Network is one of the kinds.
type Network struct {
	Name string
	Doc  string // its layers, in one line
	make func(*net)
}

// Networks lists the kinds, simple ones first.
func Networks() []Network {
	return []Network{
		{"mlp", "three dense layers", mlp},
		{"cnn", "convolutions and pools in a row", cnn},
		{"inception", "four branches of convolutions, joined, twice", inception},
		{"mobilenet", "depthwise separable convolutions with normalisation", mobilenet},
		{"squeeze", "inverted residuals that weigh their channels, hard swish", squeeze},
		{"residual", "convolutions with additions around them", residual},
		{"lstm", "two recurrent layers with long short-term memory", lstm},
		{"gru", "a gated recurrent layer in both directions", gru},
		{"transformer", "two encoder layers with self-attention", transformer},
		{"textcnn", "embedded words, convolutions of three widths over them", textcnn},
		{"recommender", "embeddings and numbers, each pair's product, dense layers", recommender},
		{"wave", "convolutions over one dimension, sound for instance", wave},
	}
}

// Build returns the network as a graph. The same network has the same bytes every time.
func (n Network) Build() *onnxmodel.Graph {
	b := &net{Graph: onnxmodel.NewGraph(n.Name), rng: rand.New(rand.NewPCG(1, 0x7a6f6f))}
	n.make(b)
	return b.Graph
}

// net is a network being built. Its methods add layers and return the name of what they give.
type net struct {
	*onnxmodel.Graph
	rng  *rand.Rand
	made int
}

func (b *net) name(what string) string {
	b.made++
	return fmt.Sprintf("%s%d", what, b.made)
}

// op adds a node with one output.
func (b *net) op(op string, inputs []string, attrs ...onnxmodel.Attr) string {
	out := b.name("v")
	b.Node(op, inputs, []string{out}, attrs...)
	return out
}

// weights adds random constants, scaled so that values neither grow nor vanish from layer to layer.
func (b *net) weights(fan int64, dims ...int64) string {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	scale := float32(math.Sqrt(3 / float64(max(fan, 1))))
	values := make([]float32, n)
	for i := range values {
		values[i] = scale * (2*b.rng.Float32() - 1)
	}
	name := b.name("w")
	b.Initializer(name, values, dims...)
	return name
}

func (b *net) same(v float32, n int64) string {
	values := make([]float32, n)
	for i := range values {
		values[i] = v
	}
	name := b.name("c")
	b.Initializer(name, values, n)
	return name
}

func (b *net) ints(v ...int64) string {
	name := b.name("i")
	b.InitializerInt64(name, v, int64(len(v)))
	return name
}

func (b *net) dense(x string, in, out int64) string {
	return b.op("Gemm", []string{x, b.weights(in, in, out), b.same(0.01, out)})
}

func (b *net) relu(x string) string { return b.op("Relu", []string{x}) }

// conv is a convolution over two dimensions that keeps their size but for the stride.
func (b *net) conv(x string, in, out, size, stride, groups int64) string {
	pad := size / 2
	return b.op("Conv", []string{x, b.weights(in/groups*size*size, out, in/groups, size, size), b.same(0.01, out)},
		onnxmodel.AttrInts("kernel_shape", size, size), onnxmodel.AttrInts("strides", stride, stride),
		onnxmodel.AttrInts("pads", pad, pad, pad, pad), onnxmodel.AttrInt("group", groups))
}

// conv1 is a convolution over one dimension.
func (b *net) conv1(x string, in, out, size, stride int64) string {
	return b.op("Conv", []string{x, b.weights(in*size, out, in, size), b.same(0.01, out)},
		onnxmodel.AttrInts("kernel_shape", size), onnxmodel.AttrInts("strides", stride),
		onnxmodel.AttrInts("pads", size/2, size/2))
}

func (b *net) norm(x string, channels int64) string {
	return b.op("BatchNormalization", []string{
		x, b.same(1, channels), b.same(0.1, channels), b.same(0.05, channels), b.same(0.9, channels),
	})
}

func (b *net) maxPool(x string) string {
	return b.op("MaxPool", []string{x}, onnxmodel.AttrInts("kernel_shape", 2, 2), onnxmodel.AttrInts("strides", 2, 2))
}

// classify adds the last layers: a dense one and a softmax over the classes.
func (b *net) classify(x string, in, classes int64) {
	b.Node("Softmax", []string{b.dense(x, in, classes)}, []string{"output"}, onnxmodel.AttrInt("axis", 1))
	b.Output("output", onnxmodel.Float32, onnxmodel.Symbolic, classes)
}
