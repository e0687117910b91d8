package nn

import (
	"math/rand/v2"

	"github.com/sluice-serving/sluice/onnxmodel"
)

// Dense is a fully connected layer with a rectifier.
func Dense(units int) Spec { return denseSpec(units, true) }

// Logits is a fully connected layer without one, for the end of a network.
func Logits(units int) Spec { return denseSpec(units, false) }

func denseSpec(units int, relu bool) Spec {
	return func(in Shape, rng *rand.Rand) layer {
		d := &dense{in: in, units: units, ld: (units + 15) &^ 15, relu: relu}
		d.p = make([]float32, (in.Len()+1)*d.ld)
		row := make([]float32, units)
		for i := range in.Len() {
			heInit(rng, row, in.Len())
			copy(d.p[i*d.ld:], row)
		}
		d.t = make([]float32, units*in.Len())
		d.refresh()
		return d
	}
}

// dense keeps its weights as input by output, outputs padded with zeros to ld, then one bias per output. t is the
// transpose without padding.
type dense struct {
	in        Shape
	units, ld int
	relu      bool
	p, t      []float32
}

func (d *dense) out() Shape         { return Shape{d.units, 1, 1} }
func (d *dense) weights() []float32 { return d.p }
func (d *dense) parameters() int    { return (d.in.Len() + 1) * d.units }

func (d *dense) refresh() { transpose(d.t, d.p, d.in.Len(), d.units, d.in.Len(), d.ld) }

func (d *dense) forward(w *work, x, y []float32, n int) {
	k := d.in.Len()
	z := grow(&w.buf, n*d.ld)
	gemm(n, d.ld, k, x, k, d.p, d.ld, z, d.ld, false)
	bias := d.p[k*d.ld:]
	for b := range n {
		to := y[b*d.units : (b+1)*d.units]
		for i := range to {
			to[i] = z[b*d.ld+i] + bias[i]
			if d.relu {
				to[i] = max(to[i], 0)
			}
		}
	}
}

func (d *dense) backward(w *work, x, y, dy, dx, grad []float32, n int) {
	k := d.in.Len()
	if d.relu {
		rectify(y[:n*d.units], dy)
	}
	dz := grow(&w.buf, n*d.ld)
	clear(dz)
	gb := grad[k*d.ld:]
	for b := range n {
		for i, v := range dy[b*d.units : (b+1)*d.units] {
			dz[b*d.ld+i] = v
			gb[i] += v
		}
	}
	xT := grow(&w.col, k*n)
	transpose(xT, x, n, k, n, k)
	gemm(k, d.ld, n, xT, n, dz, d.ld, grad, d.ld, true)
	if dx != nil {
		gemm(n, k, d.units, dz, d.ld, d.t, k, dx, k, false)
	}
}

func (d *dense) export(g *onnxmodel.Graph, prefix, in string) string {
	k, units := int64(d.in.Len()), int64(d.units)
	if d.in.H*d.in.W > 1 || d.in.C == 1 {
		g.Node("Flatten", []string{in}, []string{prefix + "_flat"})
		in = prefix + "_flat"
	}
	g.Initializer(prefix+"_w", d.t, units, k)
	g.Initializer(prefix+"_b", d.p[d.in.Len()*d.ld:d.in.Len()*d.ld+d.units], units)
	g.Node("Gemm", []string{in, prefix + "_w", prefix + "_b"}, []string{prefix + "_dense"}, onnxmodel.AttrInt("transB", 1))
	if !d.relu {
		return prefix + "_dense"
	}
	g.Node("Relu", []string{prefix + "_dense"}, []string{prefix + "_relu"})
	return prefix + "_relu"
}
