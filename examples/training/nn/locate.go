package nn

import (
	"math"
	"math/rand/v2"
)

// Locate ends a network that looks for one thing in a large picture: a linear score for each class at each place, and
// for each class the logarithm of the sum of the exponentials of its scores over all places. Softmax over these logits
// is then the softmax over classes and places, summed over the places. So training needs no labels of places.
func Locate(classes int) Spec {
	return func(in Shape, rng *rand.Rand) layer {
		l := &locate{in: in, classes: classes, p: make([]float32, (in.C+1)*classes)}
		heInit(rng, l.p[:in.C*classes], 2*in.C)
		l.t = make([]float32, in.C*classes)
		l.refresh()
		return l
	}
}

// locate keeps its weights as class by channel, then one bias per class; t is the transpose of the former.
type locate struct {
	in      Shape
	classes int
	p, t    []float32
}

func (l *locate) running() int         { return 0 }
func (l *locate) out() Shape           { return Shape{l.classes, 1, 1} }
func (l *locate) weights() []float32   { return l.p }
func (l *locate) multiplications() int { return l.in.Len() * l.classes }
func (l *locate) refresh()             { transpose(l.t, l.p, l.classes, l.in.C, l.classes, l.in.C) }

func (l *locate) linear() Linear {
	weights := l.classes * l.in.C
	return Linear{l.p[:weights], l.p[weights:]}
}

func (l *locate) at(in Shape) layer { m := *l; m.in = in; return &m }

// scores returns the scores of an image, class by place.
func (l *locate) scores(w *work, x []float32) []float32 {
	hw := l.in.H * l.in.W
	s := grow(&w.buf, l.classes*hw)
	gemm(l.classes, hw, l.in.C, l.p, l.in.C, x, hw, s, hw, false)
	for k, v := range l.p[l.classes*l.in.C:] {
		for i := range s[k*hw : (k+1)*hw] {
			s[k*hw+i] += v
		}
	}
	return s
}

func (l *locate) forward(w *work, x, y []float32, n int) {
	hw := l.in.H * l.in.W
	for b := range n {
		s := l.scores(w, x[b*l.in.Len():(b+1)*l.in.Len()])
		for k := range l.classes {
			y[b*l.classes+k] = logSumExp(s[k*hw : (k+1)*hw])
		}
	}
}

func logSumExp(s []float32) float32 {
	top := s[0]
	for _, v := range s {
		top = max(top, v)
	}
	var sum float64
	for _, v := range s {
		sum += math.Exp(float64(v - top))
	}
	return top + float32(math.Log(sum))
}

func (l *locate) backward(w *work, x, y, dy, dx, grad []float32, n int) {
	hw := l.in.H * l.in.W
	for b := range n {
		img := x[b*l.in.Len() : (b+1)*l.in.Len()]
		s := l.scores(w, img)
		for k := range l.classes {
			total, g := y[b*l.classes+k], dy[b*l.classes+k]
			row := s[k*hw : (k+1)*hw]
			var sum float32
			for i, v := range row {
				row[i] = g * float32(math.Exp(float64(v-total)))
				sum += row[i]
			}
			grad[l.classes*l.in.C+k] += sum
		}
		imgT := grow(&w.col, hw*l.in.C)
		transpose(imgT, img, l.in.C, hw, l.in.C, hw)
		gemm(l.classes, l.in.C, hw, s, hw, imgT, l.in.C, grad, l.in.C, true)
		if dx != nil {
			gemm(l.in.C, hw, l.classes, l.t, l.classes, s, hw, dx[b*l.in.Len():], hw, false)
		}
	}
}
