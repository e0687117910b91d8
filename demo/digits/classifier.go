package digits

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/sluice-serving/sluice/demo/digits/nn"
	"github.com/sluice-serving/sluice/onnxmodel"
)

// classifier is a variant: the mean of the logits of its members over its views.
type classifier struct {
	members []*nn.Net
	views   [][]float32 // grids; one alone means the image as it is
}

func newClassifier(members []*nn.Net, n int) *classifier {
	c := &classifier{members: members}
	for _, v := range views(n) {
		c.views = append(c.views, v.grid())
	}
	return c
}

// graph writes the classifier as a model.
func (c *classifier) graph(name string) *onnxmodel.Graph {
	const n = onnxmodel.Symbolic
	g := onnxmodel.NewGraph("digits_"+name).Input("image", onnxmodel.Float32, n, 1, Size, Size)
	image, logits := "image", "logits"
	many := int64(len(c.views))
	if many > 1 {
		image, logits = c.addViews(g), "view_logits"
	}
	outs := make([]string, len(c.members))
	for i, m := range c.members {
		outs[i] = m.Export(g, fmt.Sprintf("m%d_", i), image)
	}
	g.Node("Mean", outs, []string{logits})
	if many > 1 {
		g.InitializerInt64("by_view", []int64{-1, many, 10}, 3)
		g.Node("Reshape", []string{logits, "by_view"}, []string{"grouped"})
		g.Node("ReduceMean", []string{"grouped"}, []string{"logits"}, onnxmodel.AttrInts("axes", 1), onnxmodel.AttrInt("keepdims", 0))
	}
	g.Node("ArgMax", []string{"logits"}, []string{"label"}, onnxmodel.AttrInt("axis", 1), onnxmodel.AttrInt("keepdims", 0))
	return g.Output("logits", onnxmodel.Float32, n, 10).Output("label", onnxmodel.Int64, n)
}

// addViews samples all views of an image as one tall image and cuts it up, so that the members see N times views images.
func (c *classifier) addViews(g *onnxmodel.Graph) string {
	many := int64(len(c.views))
	var grid []float32
	for _, v := range c.views {
		grid = append(grid, v...)
	}
	g.Initializer("grid", grid, 1, many*Size, Size, 2)
	g.InitializerInt64("first", []int64{0}, 1)
	g.InitializerInt64("grid_rest", []int64{many * Size, Size, 2}, 3)
	g.InitializerInt64("single", []int64{-1, 1, Size, Size}, 4)
	g.Node("Shape", []string{"image"}, []string{"image_shape"})
	g.Node("Gather", []string{"image_shape", "first"}, []string{"batch"})
	g.Node("Concat", []string{"batch", "grid_rest"}, []string{"grid_shape"}, onnxmodel.AttrInt("axis", 0))
	g.Node("Expand", []string{"grid", "grid_shape"}, []string{"grids"})
	g.Node("GridSample", []string{"image", "grids"}, []string{"tall"}, onnxmodel.AttrString("mode", "bilinear"),
		onnxmodel.AttrString("padding_mode", "border"), onnxmodel.AttrInt("align_corners", 0))
	g.Node("Reshape", []string{"tall", "single"}, []string{"views"})
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

// predictor runs a classifier on one goroutine.
type predictor struct {
	c       *classifier
	runners []*nn.Runner
	seen    []float32
	logits  []float32
}

func (c *classifier) predictor() *predictor {
	p := &predictor{c: c, seen: make([]float32, len(c.views)*Pixels), logits: make([]float32, 10)}
	for _, m := range c.members {
		p.runners = append(p.runners, m.Runner())
	}
	return p
}

// predict returns the label and the logits of an image; the logits are valid until the next call.
func (p *predictor) predict(img []float32) (int, []float32) {
	x := img
	if len(p.c.views) > 1 {
		for i, grid := range p.c.views {
			look(img, grid, p.seen[i*Pixels:(i+1)*Pixels])
		}
		x = p.seen
	}
	clear(p.logits)
	share := 1 / float32(len(p.c.views)*len(p.runners))
	for _, r := range p.runners {
		for i, v := range r.Forward(x) {
			p.logits[i%10] += v * share
		}
	}
	best := 0
	for i, v := range p.logits {
		if v > p.logits[best] {
			best = i
		}
	}
	return best, p.logits
}

// accuracy returns the share of images that the classifier labels rightly, on all cores. It gives up, and returns nothing
// of use, when stop says so; that is asked from any goroutine.
func (c *classifier) accuracy(images []float32, labels []int64, stop func() bool) float64 {
	var wg sync.WaitGroup
	var next, right atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			p := c.predictor()
			for i := int(next.Add(1)) - 1; i < len(labels) && !stop(); i = int(next.Add(1)) - 1 {
				if got, _ := p.predict(images[i*Pixels : (i+1)*Pixels]); int64(got) == labels[i] {
					right.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return float64(right.Load()) / float64(len(labels))
}
