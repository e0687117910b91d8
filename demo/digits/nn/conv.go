package nn

import (
	"math/rand/v2"

	"github.com/sluice-serving/sluice/onnxmodel"
)

// Conv is a convolution of odd size with zero padding that keeps height and width, then a rectifier.
func Conv(size, channels int) Spec {
	return func(in Shape, rng *rand.Rand) layer {
		c := &conv{in: in, o: Shape{channels, in.H, in.W}, size: size, k: in.C * size * size}
		c.p = make([]float32, c.k*channels+channels)
		heInit(rng, c.p[:c.k*channels], c.k)
		c.fwd = make([]float32, channels*c.k)
		c.flip = make([]float32, in.C*channels*size*size)
		c.refresh()
		return c
	}
}

// conv keeps its weights as (input channel, row, column) by output channel, then one bias per output channel: the layout
// in which their gradient comes out of a product with long rows. fwd is its transpose. flip serves the gradient of the
// input, which is a convolution of the output's gradient with the mirrored kernels.
type conv struct {
	in, o     Shape
	size, k   int
	p         []float32
	fwd, flip []float32
}

func (c *conv) out() Shape         { return c.o }
func (c *conv) weights() []float32 { return c.p }
func (c *conv) parameters() int    { return len(c.p) }

func (c *conv) refresh() {
	transpose(c.fwd, c.p, c.k, c.o.C, c.k, c.o.C)
	area := c.size * c.size
	for i := range c.in.C {
		for t := range area {
			for o := range c.o.C {
				c.flip[(i*c.o.C+o)*area+area-1-t] = c.p[(i*area+t)*c.o.C+o]
			}
		}
	}
}

func (c *conv) forward(w *work, x, y []float32, n int) {
	hw, ld := c.in.H*c.in.W, stride(c.in.H*c.in.W)
	bias := c.p[c.k*c.o.C:]
	for b := range n {
		col := unfold(w, x[b*c.in.Len():(b+1)*c.in.Len()], c.in, c.size, ld)
		to := y[b*c.o.Len() : (b+1)*c.o.Len()]
		gemm(c.o.C, hw, c.k, c.fwd, c.k, col, ld, to, hw, false)
		for o, v := range bias {
			row := to[o*hw : (o+1)*hw]
			for i := range row {
				row[i] = positive(row[i] + v)
			}
		}
	}
}

func (c *conv) backward(w *work, x, y, dy, dx, grad []float32, n int) {
	hw, ld := c.in.H*c.in.W, stride(c.in.H*c.in.W)
	gw, gb := grad[:c.k*c.o.C], grad[c.k*c.o.C:]
	rectify(y[:n*c.o.Len()], dy)
	for b := range n {
		dz := dy[b*c.o.Len() : (b+1)*c.o.Len()]
		for o := range gb {
			var s float32
			for _, v := range dz[o*hw : (o+1)*hw] {
				s += v
			}
			gb[o] += s
		}
		dzT := grow(&w.buf, hw*c.o.C)
		transpose(dzT, dz, c.o.C, hw, c.o.C, hw)
		col := unfold(w, x[b*c.in.Len():(b+1)*c.in.Len()], c.in, c.size, ld)
		gemm(c.k, c.o.C, hw, col, ld, dzT, c.o.C, gw, c.o.C, true)
		if dx != nil {
			col = unfold(w, dz, c.o, c.size, ld)
			k := c.o.C * c.size * c.size
			gemm(c.in.C, hw, k, c.flip, k, col, ld, dx[b*c.in.Len():], hw, false)
		}
	}
}

// unfold lays out every window of an image as a column, so that a convolution becomes a matrix product. Row
// (channel, i, j) holds, for each position, the element i rows and j columns from the window's corner.
func unfold(w *work, x []float32, in Shape, size, ld int) []float32 {
	p := size / 2
	wide := in.W + 2*p
	pad := grow(&w.pad, in.C*(in.H+2*p)*wide)
	clear(pad)
	for r := range in.C * in.H {
		at := (r/in.H*(in.H+2*p)+r%in.H+p)*wide + p
		copy(pad[at:at+in.W], x[r*in.W:(r+1)*in.W])
	}
	col := grow(&w.col, in.C*size*size*ld)
	at := 0
	for c := range in.C {
		plane := pad[c*(in.H+2*p)*wide:]
		for i := range size {
			for j := range size {
				row := col[at : at+in.H*in.W]
				copyRows(row, plane[i*wide+j:], in.H, in.W, wide)
				at += ld
			}
		}
	}
	return col
}

// copyRowsGo copies rows of w elements that lie ld apart to one after the other.
func copyRowsGo(to, from []float32, rows, w, ld int) {
	for r := range rows {
		copy(to[r*w:(r+1)*w], from[r*ld:r*ld+w])
	}
}

func (c *conv) export(g *onnxmodel.Graph, prefix, in string) string {
	o, i, s, p := int64(c.o.C), int64(c.in.C), int64(c.size), int64(c.size/2)
	g.Initializer(prefix+"_w", c.fwd, o, i, s, s)
	g.Initializer(prefix+"_b", c.p[c.k*c.o.C:], o)
	g.Node("Conv", []string{in, prefix + "_w", prefix + "_b"}, []string{prefix + "_conv"},
		onnxmodel.AttrInts("kernel_shape", s, s), onnxmodel.AttrInts("pads", p, p, p, p))
	g.Node("Relu", []string{prefix + "_conv"}, []string{prefix + "_relu"})
	return prefix + "_relu"
}
