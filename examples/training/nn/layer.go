package nn

import (
	"math"
	"math/rand/v2"
)

// Shape is the size of one image's activations: channels, height, width.
type Shape struct{ C, H, W int }

// Len returns the number of elements.
func (s Shape) Len() int { return s.C * s.H * s.W }

// Spec says how to make a layer once the shape of its input is known.
type Spec func(in Shape, rng *rand.Rand) layer

// layer is one step of a network. Activations of n images lie one after the other. A layer's weights and its gradients
// are flat slices of the same layout.
type layer interface {
	out() Shape
	// at is the layer for an input of another height and width, with the same weights.
	at(in Shape) layer
	weights() []float32
	// running counts the last weights that are running means. Their gradients are the values that they are means of.
	running() int
	// multiplications counts the multiplications that an image takes.
	multiplications() int
	// refresh recomputes derived forms of the weights after they have changed.
	refresh()
	forward(w *work, x, y []float32, n int)
	// backward adds to grad and, unless dx is nil, sets it. It may overwrite dy.
	backward(w *work, x, y, dy, dx, grad []float32, n int)
	// linear returns the weights as forward uses them outside of training. Layers without weights have none.
	linear() Linear
}

// work is scratch memory of one goroutine.
type work struct {
	col, pad, buf []float32
	train         bool       // gradients are computed afterwards
	keep          *[]float32 // what a layer keeps from forward to backward
}

func grow(s *[]float32, n int) []float32 {
	if cap(*s) < n {
		*s = make([]float32, n)
	}
	return (*s)[:n]
}

// stride keeps rows of a matrix off the same cache sets.
func stride(n int) int { return (n+15)&^15 + 16 }

// heInit draws weights for a layer with a rectifier (He et al., 2015, section 2.2).
func heInit(rng *rand.Rand, w []float32, fanIn int) {
	scale := math.Sqrt(2 / float64(fanIn))
	for i := range w {
		w[i] = float32(rng.NormFloat64() * scale)
	}
}

func transpose(to, from []float32, rows, cols, ldTo, ldFrom int) {
	i := 0
	for ; i+4 <= rows; i += 4 {
		r0, r1 := from[i*ldFrom:i*ldFrom+cols], from[(i+1)*ldFrom:(i+1)*ldFrom+cols]
		r2, r3 := from[(i+2)*ldFrom:(i+2)*ldFrom+cols], from[(i+3)*ldFrom:(i+3)*ldFrom+cols]
		for j := range r0 {
			q := (*[4]float32)(to[j*ldTo+i:])
			q[0], q[1], q[2], q[3] = r0[j], r1[j], r2[j], r3[j]
		}
	}
	for ; i < rows; i++ {
		for j, v := range from[i*ldFrom : i*ldFrom+cols] {
			to[j*ldTo+i] = v
		}
	}
}

// ordered maps the bits of a float to an integer that compares as the float does, and back: integers have a maximum
// without branches.
func ordered(b uint32) int32 { s := int32(b); return s ^ int32(uint32(s>>31)>>1) }
