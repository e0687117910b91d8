package nn

import (
	"math"
	"math/rand/v2"
)

// fixed is the base of layers without weights.
type fixed struct{ in, o Shape }

func (f fixed) out() Shape         { return f.o }
func (fixed) weights() []float32   { return nil }
func (fixed) running() int         { return 0 }
func (fixed) linear() Linear       { return Linear{} }
func (fixed) multiplications() int { return 0 }
func (fixed) refresh()             {}

// MaxPool takes the largest of each 2 by 2 square; height and width must be even.
func MaxPool() Spec {
	return func(in Shape, _ *rand.Rand) layer {
		return &maxPool{fixed{in, Shape{in.C, in.H / 2, in.W / 2}}}
	}
}

type maxPool struct{ fixed }

func (m *maxPool) at(in Shape) layer { return MaxPool()(in, nil) }

func (m *maxPool) forward(_ *work, x, y []float32, n int) {
	w, wo := m.in.W, m.o.W
	for r := range n * m.o.C * m.o.H {
		top, low, to := x[2*r*w:2*r*w+w], x[(2*r+1)*w:(2*r+2)*w], y[r*wo:(r+1)*wo]
		maxPairs(to, top, low)
	}
}

// maxPairsGo sets each element of to to the largest of two of top and the two of low below them.
func maxPairsGo(to, top, low []float32) {
	for i := range to {
		best := max(ordered(math.Float32bits(top[2*i])), ordered(math.Float32bits(top[2*i+1])),
			ordered(math.Float32bits(low[2*i])), ordered(math.Float32bits(low[2*i+1])))
		to[i] = math.Float32frombits(uint32(ordered(uint32(best))))
	}
}

// backward gives the gradient to every element equal to the largest, without unpredictable branches. Equal elements are
// almost always rectified ones, which pass on no gradient.
func (m *maxPool) backward(_ *work, x, y, dy, dx, _ []float32, n int) {
	if dx == nil {
		return
	}
	w, wo := m.in.W, m.o.W
	for r := range n * m.o.C * m.o.H {
		top, low := x[2*r*w:2*r*w+w], x[(2*r+1)*w:(2*r+2)*w]
		dTop, dLow := dx[2*r*w:2*r*w+w], dx[(2*r+1)*w:(2*r+2)*w]
		best, g := y[r*wo:(r+1)*wo], dy[r*wo:(r+1)*wo]
		for i, b := range best {
			dTop[2*i], dTop[2*i+1] = ifEqual(top[2*i], b, g[i]), ifEqual(top[2*i+1], b, g[i])
			dLow[2*i], dLow[2*i+1] = ifEqual(low[2*i], b, g[i]), ifEqual(low[2*i+1], b, g[i])
		}
	}
}

// ifEqual returns g where a and b have the same bits, and 0 elsewhere.
func ifEqual(a, b, g float32) float32 {
	d := math.Float32bits(a) ^ math.Float32bits(b)
	same := (d|-d)>>31 - 1
	return math.Float32frombits(math.Float32bits(g) & same)
}

// AvgPool takes the mean of each size by size square; height and width must be multiples of size.
func AvgPool(size int) Spec {
	return func(in Shape, _ *rand.Rand) layer {
		return &avgPool{fixed{in, Shape{in.C, in.H / size, in.W / size}}, size}
	}
}

type avgPool struct {
	fixed
	size int
}

func (a *avgPool) at(in Shape) layer { return AvgPool(a.size)(in, nil) }

func (a *avgPool) forward(_ *work, x, y []float32, n int) {
	clear(y[:n*a.o.Len()])
	scale := 1 / float32(a.size*a.size)
	for r := range n * a.in.C * a.in.H {
		to := y[r/a.size*a.o.W : (r/a.size+1)*a.o.W]
		for i, v := range x[r*a.in.W : (r+1)*a.in.W] {
			to[i/a.size] += v * scale
		}
	}
}

func (a *avgPool) backward(_ *work, _, _, dy, dx, _ []float32, n int) {
	if dx == nil {
		return
	}
	scale := 1 / float32(a.size*a.size)
	for r := range n * a.in.C * a.in.H {
		from := dy[r/a.size*a.o.W : (r/a.size+1)*a.o.W]
		to := dx[r*a.in.W : (r+1)*a.in.W]
		for i := range to {
			to[i] = from[i/a.size] * scale
		}
	}
}
