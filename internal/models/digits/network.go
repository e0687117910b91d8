package digits

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// LayerKind is what a layer does.
type LayerKind string

// The kinds of layers. After the last one a score for each class at each place follows.
const (
	Conv LayerKind = "conv" // a convolution that keeps height and width, and a rectifier
	Max  LayerKind = "max"  // the largest of each square
	Avg  LayerKind = "avg"  // the mean of each square
)

// Layer is a layer of a network. Size is that of its squares or kernels.
type Layer struct {
	Kind           LayerKind
	Size, Channels int
}

// ParseLayers reads layers that are written as words, such as avg2, max2 and conv3x32 (size 3, 32 channels).
func ParseLayers(words string) (out []Layer, err error) {
	for _, word := range strings.Fields(words) {
		digits := max(strings.IndexAny(word, "0123456789"), 0)
		l := Layer{Kind: LayerKind(word[:digits])}
		size, channels, two := strings.Cut(word[digits:], "x")
		l.Size, _ = strconv.Atoi(size)
		l.Channels, _ = strconv.Atoi(channels)
		switch {
		case l.Kind == Conv && l.Size > 0 && l.Size%2 == 1 && l.Channels > 0:
		case l.Kind == Max && word == "max2", l.Kind == Avg && l.Size > 0 && !two:
		default:
			return nil, fmt.Errorf("layers %q: none is written %q", words, word)
		}
		out = append(out, l)
	}
	return out, nil
}

// Linear is the weights of a layer, those of one output after those of another, and a bias for each output.
type Linear struct{ Weights, Bias []float32 }

// Network is one trained network; several variants may use it. Layers is as ParseLayers reads it.
type Network struct {
	Name    string `json:"name"`
	Layers  string `json:"layers"`
	Classes int    `json:"classes"`
	SHA256  string `json:"sha256"` // of the file of its weights

	data   []byte   // of its file
	linear []Linear // the weights of the layers that have some, and of the scores
}

// SetLinear gives the network the weights of its layers that have some, and of its scores. It keeps what their file
// does: 255 levels for each output.
func (n *Network) SetLinear(all []Linear) error {
	file := encode(all)
	sum := sha256.Sum256(file)
	n.SHA256 = hex.EncodeToString(sum[:])
	return n.decode(file)
}

// Linear returns the weights. They are shared: do not change them.
func (n *Network) Linear() []Linear { return n.linear }

// shape is the number of outputs of a layer with weights, and of the inputs of each.
type shape struct{ outputs, inputs int }

// shapes returns the shapes of the layers that have weights, and of the scores.
func (n *Network) shapes() (out []shape, err error) {
	layers, err := ParseLayers(n.Layers)
	channels := 1
	for _, l := range layers {
		if l.Kind == Conv {
			out = append(out, shape{l.Channels, channels * l.Size * l.Size})
			channels = l.Channels
		}
	}
	return append(out, shape{n.Classes, channels}), err
}

// places adds the network to a graph, with names that start with prefix. It returns the name of the scores of all
// classes at all places of a picture, a value of shape [N, classes, height, width], and by how much these are smaller
// than those of the picture.
func (n *Network) places(g *onnxmodel.Graph, prefix, in string) (scores string, smaller int, err error) {
	layers, err := ParseLayers(n.Layers)
	if err != nil {
		return "", 0, err
	}
	shapes, _ := n.shapes()
	if len(shapes) != len(n.linear) {
		return "", 0, fmt.Errorf("network %q has the weights of %d layers, want %d", n.Name, len(n.linear), len(shapes))
	}
	at, channels := 0, int64(1)
	smaller = 1
	for i, l := range layers {
		name, s := fmt.Sprintf("%s%d", prefix, i), int64(l.Size)
		switch l.Kind {
		case Conv:
			n.linear[at].conv(g, name, in, name+"_conv", channels, s)
			g.Node("Relu", []string{name + "_conv"}, []string{name + "_relu"})
			in, channels, at = name+"_relu", int64(l.Channels), at+1
			continue
		case Max:
			pool(g, "MaxPool", name, in, s)
		case Avg:
			pool(g, "AveragePool", name, in, s)
		}
		in = name + "_pool"
		smaller *= l.Size
	}
	name := fmt.Sprintf("%s%d", prefix, len(layers))
	n.linear[at].conv(g, name, in, name+"_scores", channels, 1)
	return name + "_scores", smaller, nil
}

// conv adds a convolution of a size to a graph.
func (l *Linear) conv(g *onnxmodel.Graph, name, in, out string, channels, size int64) {
	outputs := int64(len(l.Bias))
	g.Initializer(name+"_w", l.Weights, outputs, channels, size, size)
	g.Initializer(name+"_b", l.Bias, outputs)
	g.Node("Conv", []string{in, name + "_w", name + "_b"}, []string{out},
		onnxmodel.AttrInts("kernel_shape", size, size),
		onnxmodel.AttrInts("pads", slices.Repeat([]int64{size / 2}, 4)...))
}

func pool(g *onnxmodel.Graph, op, name, in string, size int64) {
	g.Node(op, []string{in}, []string{name + "_pool"}, onnxmodel.AttrInts("kernel_shape", size, size),
		onnxmodel.AttrInts("strides", size, size))
}

// logits adds the network to a graph, with names that start with prefix and not using softmax. It returns the name of
// the logits, a value of shape [N, classes]: for each class the logarithm of the sum of the exponentials of its scores.
// Softmax over them is softmax over classes and places, summed over the places.
func (n *Network) logits(g *onnxmodel.Graph, prefix, in string) (string, error) {
	scores, _, err := n.places(g, prefix, in)
	g.Node("ReduceLogSumExp", []string{scores}, []string{prefix + "logits"}, onnxmodel.AttrInts("axes", 2, 3),
		onnxmodel.AttrInt("keepdims", 0))
	return prefix + "logits", err
}
