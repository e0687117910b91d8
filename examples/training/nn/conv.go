package nn

import (
	"math"
	"math/rand/v2"
)

// Conv is a convolution of odd size with zero padding that keeps height and width, batch normalisation (Ioffe and
// Szegedy, 2015, algorithms 1 and 2), then a rectifier. Training normalises over a shard of images; otherwise, and in
// the exported model, the running means and variances are folded into the weights.
func Conv(size, channels int) Spec {
	return func(in Shape, rng *rand.Rand) layer {
		c := &conv{in: in, o: Shape{channels, in.H, in.W}, size: size, k: in.C * size * size}
		c.p = make([]float32, c.k*channels+4*channels)
		heInit(rng, c.p[:c.k*channels], c.k)
		gain, _, _, variance := c.norm()
		for i := range gain {
			gain[i], variance[i] = 1, 1
		}
		c.fwd, c.folded = make([]float32, channels*c.k), make([]float32, channels*c.k)
		c.bias = make([]float32, channels)
		c.flip = make([]float32, in.C*channels*size*size)
		c.refresh()
		return c
	}
}

// conv stores its weights as (input channel, row, column) by output channel. In this layout a matrix product with long
// rows gives their gradient. The gain and bias of the normalisation and the running mean and variance of each output
// channel follow. fwd is the transpose of the weights, and folded is fwd times the normalisation's scale. flip is the
// mirrored kernels: the gradient of the input is a convolution of the output's gradient with them.
type conv struct {
	in, o       Shape
	size, k     int
	p           []float32
	fwd, folded []float32
	bias        []float32
	flip        []float32
}

// normEps keeps the normalisation finite where a channel does not vary.
const normEps = 1e-5

func (c *conv) out() Shape           { return c.o }
func (c *conv) weights() []float32   { return c.p }
func (c *conv) running() int         { return 2 * c.o.C }
func (c *conv) linear() Linear       { return Linear{c.folded, c.bias} }
func (c *conv) multiplications() int { return c.k * c.o.Len() }

func (c *conv) at(in Shape) layer {
	d := *c
	d.in, d.o = in, Shape{c.o.C, in.H, in.W}
	return &d
}

// norm returns the parts of the weights that belong to the normalisation.
func (c *conv) norm() (gain, bias, mean, variance []float32) { return split(c.p[c.k*c.o.C:], c.o.C) }

func split(p []float32, n int) (a, b, c, d []float32) {
	return p[:n], p[n : 2*n], p[2*n : 3*n], p[3*n:]
}

func (c *conv) refresh() {
	transpose(c.fwd, c.p, c.k, c.o.C, c.k, c.o.C)
	gain, bias, mean, variance := c.norm()
	for o, g := range gain {
		scale := g / float32(math.Sqrt(float64(variance[o])+normEps))
		c.bias[o] = bias[o] - mean[o]*scale
		for i := range c.k {
			c.folded[o*c.k+i] = c.fwd[o*c.k+i] * scale
		}
	}
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
	hw := c.in.H * c.in.W
	weights, to := c.folded, y
	if w.train {
		weights, to = c.fwd, grow(w.keep, n*c.o.Len()+2*c.o.C)
		*w.keep = to
	}
	strip := c.strip()
	ld := stride(strip * c.in.W)
	for b := range n {
		pad := border(w, x[b*c.in.Len():(b+1)*c.in.Len()], c.in, c.size/2)
		for r := 0; r < c.in.H; r += strip {
			rows := min(strip, c.in.H-r)
			col := unfoldRows(w, pad, c.in, c.size, ld, r, rows)
			gemm(c.o.C, rows*c.in.W, c.k, weights, c.k, col, ld, to[b*c.o.Len()+r*c.in.W:], hw, false)
		}
	}
	if w.train {
		c.normalise(to, y, n)
		return
	}
	for b := range n {
		for o, v := range c.bias {
			row := y[b*c.o.Len()+o*hw:][:hw]
			shift(row, row, 1, v)
		}
	}
}

// normalise sets y to the rectified, normalised z, and the end of z to each channel's mean and one over its deviation.
func (c *conv) normalise(z, y []float32, n int) {
	hw := c.in.H * c.in.W
	gain, bias, _, _ := c.norm()
	mean, inv := z[n*c.o.Len():][:c.o.C], z[n*c.o.Len()+c.o.C:]
	for o := range c.o.C {
		var sum, sq float64
		for b := range n {
			row := z[b*c.o.Len()+o*hw:][:hw]
			s, q := dots(row, row)
			sum += float64(s)
			sq += float64(q)
		}
		m := sum / float64(n*hw)
		mean[o], inv[o] = float32(m), float32(1/math.Sqrt(max(sq/float64(n*hw)-m*m, 0)+normEps))
		scale := gain[o] * inv[o]
		for b := range n {
			at := b*c.o.Len() + o*hw
			shift(y[at:at+hw], z[at:at+hw], scale, bias[o]-mean[o]*scale)
		}
	}
}

func (c *conv) backward(w *work, x, y, dy, dx, grad []float32, n int) {
	hw, ld := c.in.H*c.in.W, stride(c.in.H*c.in.W)
	rectify(y[:n*c.o.Len()], dy)
	c.normaliseBack(*w.keep, dy, grad[c.k*c.o.C:], n)
	gw := grad[:c.k*c.o.C]
	for b := range n {
		dz := dy[b*c.o.Len() : (b+1)*c.o.Len()]
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

// normaliseBack turns the gradient of the normalised values into that of z, in place, and adds to the gradients of gain
// and bias; to the gradients of the running mean and variance it adds the shard's mean and variance, once for each
// image.
func (c *conv) normaliseBack(z, dy, grad []float32, n int) {
	hw := c.in.H * c.in.W
	gain, _, _, _ := c.norm()
	gGain, gBias, gMean, gVar := split(grad, c.o.C)
	mean, inv := z[n*c.o.Len():][:c.o.C], z[n*c.o.Len()+c.o.C:]
	for o := range c.o.C {
		m, s := mean[o], inv[o]
		var sum, dot float32
		for b := range n {
			at := b*c.o.Len() + o*hw
			s1, d1 := dots(dy[at:at+hw], z[at:at+hw])
			sum += s1
			dot += d1
		}
		dot = (dot - m*sum) * s
		gGain[o] += dot
		gBias[o] += sum
		gMean[o] += float32(n) * m
		gVar[o] += float32(n) * (1/(s*s) - normEps)
		// dz = scale·(dy − mean(dy) − ẑ·mean(dy·ẑ)), written as a·dy + b·z + c.
		count := float32(n * hw)
		a := gain[o] * s
		bz := -a * dot / count * s
		k := -a*sum/count - bz*m
		for b := range n {
			at := b*c.o.Len() + o*hw
			combine(dy[at:at+hw], z[at:at+hw], a, bz, k)
		}
	}
}

// unfold lays out every window of an image as a column, so that a convolution becomes a matrix product. Row
// (channel, i, j) holds, for each position, the element i rows and j columns from the window's corner.
func unfold(w *work, x []float32, in Shape, size, ld int) []float32 {
	return unfoldRows(w, border(w, x, in, size/2), in, size, ld, 0, in.H)
}

// border copies an image into one with p more zeros on each side.
func border(w *work, x []float32, in Shape, p int) []float32 {
	wide := in.W + 2*p
	pad := grow(&w.pad, in.C*(in.H+2*p)*wide)
	clear(pad)
	for r := range in.C * in.H {
		at := (r/in.H*(in.H+2*p)+r%in.H+p)*wide + p
		copy(pad[at:at+in.W], x[r*in.W:(r+1)*in.W])
	}
	return pad
}

// unfoldRows is unfold for some rows of positions, from an image with its border.
func unfoldRows(w *work, pad []float32, in Shape, size, ld, first, rows int) []float32 {
	high, wide := in.H+size-1, in.W+size-1
	col := grow(&w.col, in.C*size*size*ld)
	at := 0
	for c := range in.C {
		plane := pad[(c*high+first)*wide:]
		for i := range size {
			for j := range size {
				copyRows(col[at:at+rows*in.W], plane[i*wide+j:], rows, in.W, wide)
				at += ld
			}
		}
	}
	return col
}

// strip is how many rows of positions to unfold at once, so that their columns stay in the second-level cache.
func (c *conv) strip() int {
	const elements = 1 << 17
	rows := elements / (c.k * c.in.W)
	for _, n := range []int{8, 4, 2} { // mostly a multiple of the product's blocks
		if rows >= n {
			return min(rows/n*n, c.in.H)
		}
	}
	return 1
}

// copyRowsGo copies rows of w elements that lie ld apart to one after the other.
func copyRowsGo(to, from []float32, rows, w, ld int) {
	for r := range rows {
		copy(to[r*w:(r+1)*w], from[r*ld:r*ld+w])
	}
}
