package digits

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/sluice-serving/sluice/models/digits/nn"
	"github.com/sluice-serving/sluice/models/onnxmodel"
)

// classifier is a variant: the mean of the logits of its members over its views.
type classifier struct {
	members []*nn.Net
	views   []view
}

func newClassifier(members []*nn.Net, views int) *classifier {
	return &classifier{members: members, views: lattice[:views]}
}

// graph writes the classifier as a model.
func (c *classifier) graph(name string) *onnxmodel.Graph {
	const n = onnxmodel.Symbolic
	g := onnxmodel.NewGraph("digits_"+name).Input("image", onnxmodel.Uint8, n, 1, Size, Size)
	g.Initializer("grey", []float32{greyScale})
	g.Node("Cast", []string{"image"}, []string{"levels"}, onnxmodel.AttrInt("to", int64(onnxmodel.Float32)))
	g.Node("Mul", []string{"levels", "grey"}, []string{"picture"})
	picture, logits := "picture", "logits"
	many := int64(len(c.views))
	if many > 1 {
		picture, logits = c.addViews(g), "view_logits"
	}
	outs := make([]string, len(c.members))
	for i, m := range c.members {
		outs[i] = m.Export(g, fmt.Sprintf("m%d_", i), picture)
	}
	g.Node("Mean", outs, []string{logits})
	if many > 1 {
		g.InitializerInt64("by_view", []int64{many, -1, 10}, 3)
		g.Node("Reshape", []string{logits, "by_view"}, []string{"grouped"})
		g.Node("ReduceMean", []string{"grouped"}, []string{"logits"}, onnxmodel.AttrInts("axes", 0),
			onnxmodel.AttrInt("keepdims", 0))
	}
	g.Node("ArgMax", []string{"logits"}, []string{"label"}, onnxmodel.AttrInt("axis", 1),
		onnxmodel.AttrInt("keepdims", 0))
	return g.Output("logits", onnxmodel.Float32, n, 10).Output("label", onnxmodel.Int64, n)
}

// addViews cuts the views out of the pictures with their borders repeated, and joins them, all pictures of the first
// view before those of the second, so that the members see views times N pictures.
func (c *classifier) addViews(g *onnxmodel.Graph) string {
	const f = maxShift
	g.InitializerInt64("margins", []int64{0, 0, f, f, 0, 0, f, f}, 8)
	g.Node("Pad", []string{"picture", "margins"}, []string{"wide"}, onnxmodel.AttrString("mode", "edge"))
	g.InitializerInt64("axes", []int64{2, 3}, 2)
	outs := make([]string, len(c.views))
	for i, v := range c.views {
		from, to := fmt.Sprintf("view%d_from", i), fmt.Sprintf("view%d_to", i)
		y, x := int64(f+v.dy), int64(f+v.dx)
		g.InitializerInt64(from, []int64{y, x}, 2)
		g.InitializerInt64(to, []int64{y + Size, x + Size}, 2)
		outs[i] = fmt.Sprintf("view%d", i)
		g.Node("Slice", []string{"wide", from, to, "axes"}, outs[i:i+1])
	}
	g.Node("Concat", outs, []string{"views"}, onnxmodel.AttrInt("axis", 0))
	return "views"
}

// parameters counts the weights of all members.
func (c *classifier) parameters() int {
	sum := 0
	for _, m := range c.members {
		sum += m.Parameters()
	}
	return sum
}

// multiplications counts the multiplications that a picture takes.
func (c *classifier) multiplications() int {
	sum := 0
	for _, m := range c.members {
		sum += m.Multiplications()
	}
	return sum * len(c.views)
}

// greyScale turns a byte of a picture into a value from 0 to 1.
const greyScale = float32(1) / 255

// predict returns the labels and logits of pictures. They equal the outputs of the model up to rounding errors.
func (c *classifier) predict(pictures []uint8) (labels []int64, logits []float32) {
	n := len(pictures) / Pixels
	logits = make([]float32, n*10)
	for _, m := range c.members {
		for _, v := range c.views {
			add(logits, viewLogits(m, v, pictures, func() bool { return false }))
		}
	}
	scale(logits, 1/float32(len(c.members)*len(c.views)))
	return best(logits), logits
}

func add(to, x []float32) {
	for i, v := range x {
		to[i] += v
	}
}

func scale(x []float32, by float32) {
	for i := range x {
		x[i] *= by
	}
}

// best returns the label with the largest logit of each row.
func best(logits []float32) []int64 {
	labels := make([]int64, len(logits)/10)
	for i := range labels {
		row := logits[i*10 : (i+1)*10]
		for j, v := range row {
			if v > row[labels[i]] {
				labels[i] = int64(j)
			}
		}
	}
	return labels
}

// viewLogits returns the logits of a network for a view of pictures, computed on all cores. It ends early, with
// undefined logits, when stop returns true; stop is called from several goroutines.
func viewLogits(net *nn.Net, v view, pictures []uint8, stop func() bool) []float32 {
	n := len(pictures) / Pixels
	logits := make([]float32, n*10)
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			r := net.Runner()
			picture, seen := make([]float32, Pixels), make([]float32, Pixels)
			for i := int(next.Add(1)) - 1; i < n && !stop(); i = int(next.Add(1)) - 1 {
				for j, b := range pictures[i*Pixels : (i+1)*Pixels] {
					picture[j] = float32(b) * greyScale
				}
				v.shift(picture, seen)
				copy(logits[i*10:], r.Forward(seen))
			}
		})
	}
	wg.Wait()
	return logits
}
