package digits

import (
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// GreyScale turns a byte of a picture into a value from 0 to 1.
const GreyScale = float32(1) / 255

// batch is the first dimension of inputs and outputs.
const batch = onnxmodel.Symbolic

// graph returns a variant as a model.
func (l *Ladder) graph(v *Variant) (*onnxmodel.Graph, error) {
	var members []*Network
	for _, name := range v.Networks {
		i := slices.IndexFunc(l.Networks, func(n Network) bool { return n.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no network %q", name)
		}
		members = append(members, &l.Networks[i])
	}
	if len(members) == 0 || v.Views < 0 || v.Views > len(Lattice) {
		return nil, fmt.Errorf("%d networks and %d views", len(members), v.Views)
	}
	switch v.Stage {
	case Detect:
		return members[0].detector(v)
	case Read:
		return members[0].reader(v)
	}
	return classifier(v, members)
}

// grey begins the graph of a variant with an input of bytes, and returns the name of its values from 0 to 1.
func grey(v *Variant, input string, side int64) (*onnxmodel.Graph, string) {
	g := onnxmodel.NewGraph("digits_"+v.Name).Input(input, onnxmodel.Uint8, batch, 1, side, side)
	g.Initializer("grey", []float32{GreyScale})
	g.Node("Cast", []string{input}, []string{"levels"}, onnxmodel.AttrInt("to", int64(onnxmodel.Float32)))
	g.Node("Mul", []string{"levels", "grey"}, []string{"picture"})
	return g, "picture"
}

// labelled ends a graph with the label of its logits.
func labelled(g *onnxmodel.Graph) *onnxmodel.Graph {
	g.Node("ArgMax", []string{"logits"}, []string{"label"}, onnxmodel.AttrInt("axis", 1),
		onnxmodel.AttrInt("keepdims", 0))
	return g.Output("logits", onnxmodel.Float32, batch, 10).Output("label", onnxmodel.Int64, batch)
}

// classifier is the mean of the logits of networks over views.
func classifier(v *Variant, members []*Network) (*onnxmodel.Graph, error) {
	g, picture := grey(v, "image", Size)
	logits, many := "logits", int64(max(v.Views, 1))
	if many > 1 {
		picture, logits = addViews(g, Lattice[:many]), "view_logits"
	}
	outs := make([]string, len(members))
	for i, m := range members {
		var err error
		if outs[i], err = m.logits(g, fmt.Sprintf("m%d_", i), picture); err != nil {
			return nil, err
		}
	}
	g.Node("Mean", outs, []string{logits})
	if many > 1 {
		g.InitializerInt64("by_view", []int64{many, -1, 10}, 3)
		g.Node("Reshape", []string{logits, "by_view"}, []string{"grouped"})
		g.Node("ReduceMean", []string{"grouped"}, []string{"logits"}, onnxmodel.AttrInts("axes", 0),
			onnxmodel.AttrInt("keepdims", 0))
	}
	return labelled(g), nil
}

// addViews cuts the views out of the pictures with their borders repeated, and joins them, all pictures of the first
// view before those of the second, so that the members see views times N pictures.
func addViews(g *onnxmodel.Graph, views []View) string {
	const f = maxShift
	g.InitializerInt64("margins", []int64{0, 0, f, f, 0, 0, f, f}, 8)
	g.Node("Pad", []string{"picture", "margins"}, []string{"wide"}, onnxmodel.AttrString("mode", "edge"))
	g.InitializerInt64("axes", []int64{2, 3}, 2)
	outs := make([]string, len(views))
	for i, v := range views {
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

// reader reads the digit in a patch: "patch" UINT8 [N,1,40,40] to "logits" FP32 [N,10] and "label" INT64 [N].
func (n *Network) reader(v *Variant) (*onnxmodel.Graph, error) {
	g, picture := grey(v, "patch", Box)
	logits, err := n.logits(g, "r_", picture)
	g.Node("Identity", []string{logits}, []string{"logits"})
	return labelled(g), err
}

// detector says for every place of a picture whether a digit's centre is there: "image" UINT8 [N,1,192,192] to "boxes"
// FP32 [N,P,4], x1, y1, x2, y2 in pixels, and "scores" FP32 [N,P], 0.5 and more where a digit's centre is believed to
// be. A box that overlaps no better one by more than Overlap is a digit.
func (n *Network) detector(v *Variant) (*onnxmodel.Graph, error) {
	g, picture := grey(v, "image", Size)
	places, smaller, err := n.places(g, "d_", picture)
	if err != nil {
		return nil, err
	}
	side := Size / smaller
	p := int64(side * side)
	g.InitializerInt64("flat", []int64{0, 2, p}, 3)
	g.Node("Reshape", []string{places, "flat"}, []string{"by_place"})
	// The chance is the logistic function of the difference of the two scores.
	g.Initializer("difference", []float32{-1, 1}, 1, 2)
	g.Node("MatMul", []string{"difference", "by_place"}, []string{"odds"})
	g.Initializer("bias", []float32{float32(-v.Bias)})
	g.Node("Add", []string{"odds", "bias"}, []string{"weighed"})
	g.Node("Sigmoid", []string{"weighed"}, []string{"chances"})
	g.InitializerInt64("rows", []int64{0, p}, 2)
	g.Node("Reshape", []string{"chances", "rows"}, []string{"scores"})
	// The boxes are the same for every picture, so they are copied for each.
	g.Initializer("squares", Boxes(side, side), 1, p, 4)
	g.Node("Shape", []string{"image"}, []string{"shape"})
	g.InitializerInt64("first", []int64{0}, 1)
	g.Node("Gather", []string{"shape", "first"}, []string{"count"})
	g.InitializerInt64("one_one", []int64{1, 1}, 2)
	g.Node("Concat", []string{"count", "one_one"}, []string{"copies"}, onnxmodel.AttrInt("axis", 0))
	g.Node("Tile", []string{"squares", "copies"}, []string{"boxes"})
	return g.Output("boxes", onnxmodel.Float32, batch, p, 4).Output("scores", onnxmodel.Float32, batch, p), nil
}

// Boxes lists the squares around the centres of the places of a picture, row by row: x1, y1, x2, y2 in pixels. They may
// reach over the edge.
func Boxes(height, width int) []float32 {
	out := make([]float32, 0, 4*height*width)
	sy, sx := float32(Size)/float32(height), float32(Size)/float32(width)
	for i := range height {
		for j := range width {
			y, x := (float32(i)+0.5)*sy, (float32(j)+0.5)*sx
			out = append(out, x-Box/2, y-Box/2, x+Box/2, y+Box/2)
		}
	}
	return out
}
