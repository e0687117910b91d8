package nn

import (
	"math"
	"math/rand/v2"

	"github.com/sluice-serving/sluice/onnxmodel"
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
	weights() []float32
	// parameters counts the weights without padding.
	parameters() int
	// refresh brings derived forms of the weights up to date after they changed.
	refresh()
	forward(w *work, x, y []float32, n int)
	// backward adds to grad and, unless dx is nil, sets it. It may overwrite dy.
	backward(w *work, x, y, dy, dx, grad []float32, n int)
	// export adds nodes to g and returns the name of their output.
	export(g *onnxmodel.Graph, prefix, in string) string
}

// work is scratch memory of one goroutine.
type work struct {
	col, pad, buf []float32
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
	for i := range rows {
		for j, v := range from[i*ldFrom : i*ldFrom+cols] {
			to[j*ldTo+i] = v
		}
	}
}

// rectify masks gradients where the rectifier's output was not positive.
func rectify(y, dy []float32) {
	for i, v := range y {
		if v <= 0 {
			dy[i] = 0
		}
	}
}
