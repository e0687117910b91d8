package nn

import (
	"math"
	"math/rand/v2"
)

// Net is a chain of layers that ends in one number per class.
type Net struct {
	in     Shape
	layers []layer
}

// New makes a network with random weights. The last layer should be Locate.
func New(in Shape, rng *rand.Rand, specs ...Spec) *Net {
	n := &Net{in: in}
	s := in
	for _, spec := range specs {
		l := spec(s, rng)
		n.layers = append(n.layers, l)
		s = l.out()
	}
	return n
}

// At returns the network for inputs of another height and width, with the same weights: training one trains the other.
func (n *Net) At(height, width int) *Net {
	m := &Net{in: Shape{n.in.C, height, width}}
	s := m.in
	for _, l := range n.layers {
		l = l.at(s)
		m.layers = append(m.layers, l)
		s = l.out()
	}
	return m
}

// Classes returns the number of outputs.
func (n *Net) Classes() int { return n.layers[len(n.layers)-1].out().Len() }

// Multiplications returns the number of multiplications that an image takes.
func (n *Net) Multiplications() int {
	sum := 0
	for _, l := range n.layers {
		sum += l.multiplications()
	}
	return sum
}

// Linear is the weights of a layer as answers use them, those of one output after those of another, and a bias for each
// output.
type Linear struct{ Weights, Bias []float32 }

// Folded returns the weights of the layers that have some, with their normalisation folded in. They are shared: what is
// changed in them changes what a Runner answers, until the network is trained further.
func (n *Net) Folded() (out []Linear) {
	for _, l := range n.layers {
		if len(l.weights()) > 0 {
			out = append(out, l.linear())
		}
	}
	return out
}

// Places returns the scores of all classes at all places for one image, class by place. The network ends in Locate. The
// result is valid until the next call.
func (r *Runner) Places(x []float32) []float32 {
	last := len(r.net.layers) - 1
	r.w.train = false
	r.acts[0] = x
	for i, l := range r.net.layers[:last] {
		y := grow(&r.acts[i+1], l.out().Len())
		r.w.keep = &r.kept[i]
		l.forward(&r.w, r.acts[i], y, 1)
		r.acts[i+1] = y
	}
	return r.net.layers[last].(*locate).scores(&r.w, r.acts[last])
}

// Runner runs a network. It holds the memory for one goroutine; several may share a network while it is not trained.
type Runner struct {
	net   *Net
	w     work
	acts  [][]float32 // acts[i] is the input of layer i, the last the logits
	diffs [][]float32
	grads [][]float32 // one for each layer
	kept  [][]float32
}

// Runner makes a runner.
func (n *Net) Runner() *Runner {
	return &Runner{
		net: n, kept: make([][]float32, len(n.layers)), acts: make([][]float32, len(n.layers)+1),
		diffs: make([][]float32, len(n.layers)+1),
	}
}

// Forward returns the logits of the images that lie one after the other in x. The result is valid until the next call.
func (r *Runner) Forward(x []float32) []float32 { return r.forward(x, false) }

func (r *Runner) forward(x []float32, train bool) []float32 {
	r.w.train = train
	n := len(x) / r.net.in.Len()
	r.acts[0] = x
	for i, l := range r.net.layers {
		y := grow(&r.acts[i+1], n*l.out().Len())
		r.w.keep = &r.kept[i]
		l.forward(&r.w, r.acts[i], y, n)
		r.acts[i+1] = y
	}
	return r.acts[len(r.net.layers)]
}

// gradients sets r.grads to the gradient of the summed cross-entropy of the images, and returns that sum.
func (r *Runner) gradients(x []float32, labels []int) float64 {
	logits := r.forward(x, true)
	if r.grads == nil {
		for _, l := range r.net.layers {
			r.grads = append(r.grads, make([]float32, len(l.weights())))
		}
	}
	for _, g := range r.grads {
		clear(g)
	}
	n, last := len(labels), len(r.net.layers)
	d := grow(&r.diffs[last], len(logits))
	loss := crossEntropy(logits, labels, d)
	r.diffs[last] = d
	for i := last - 1; i >= 0; i-- {
		l := r.net.layers[i]
		var dx []float32
		if r.trainedBelow(i) {
			dx = grow(&r.diffs[i], len(r.acts[i]))
			r.diffs[i] = dx
		}
		r.w.keep = &r.kept[i]
		l.backward(&r.w, r.acts[i], r.acts[i+1], r.diffs[i+1], dx, r.grads[i], n)
		if dx == nil {
			break
		}
	}
	return loss
}

// trainedBelow reports whether a layer below i has weights, and so needs the gradient of i's input.
func (r *Runner) trainedBelow(i int) bool {
	for _, l := range r.net.layers[:i] {
		if len(l.weights()) > 0 {
			return true
		}
	}
	return false
}

// crossEntropy returns the summed loss of softmax over rows of logits and sets d to its gradient.
func crossEntropy(logits []float32, labels []int, d []float32) float64 {
	k := len(logits) / len(labels)
	var loss float64
	for b, label := range labels {
		row, to := logits[b*k:(b+1)*k], d[b*k:(b+1)*k]
		top := row[0]
		for _, v := range row {
			top = max(top, v)
		}
		var sum float64
		for i, v := range row {
			e := math.Exp(float64(v - top))
			to[i] = float32(e)
			sum += e
		}
		for i := range to {
			to[i] = float32(float64(to[i]) / sum)
		}
		to[label]--
		loss += math.Log(sum) - float64(row[label]-top)
	}
	return loss
}
