package digits

import (
	"math/rand/v2"

	"github.com/sluice-serving/sluice/models/digits/nn"
	"github.com/sluice-serving/sluice/models/onnxmodel"
)

// detector says for every place of a picture whether a digit's centre is there. Its network is trained like the
// classifiers, on small pictures, with two classes: without and with a digit. On a large picture it scores every place.
type detector struct {
	net  *nn.Net
	bias float64 // the least logarithm of the odds at which a place counts as a digit's
}

// drawPatch draws a picture that holds a digit or does not.
func drawPatch(rng *rand.Rand, size int, x []float32) int {
	with := rng.IntN(2)
	c := canvas{size, x}
	var labels []int64
	if with == 1 {
		labels = []int64{int64(rng.IntN(10))}
	}
	c.render(rng, labels, 2*letters)
	return with
}

// boxes lists the squares around the centres of the places of a picture, row by row: x1, y1, x2, y2 in pixels. They may
// reach over the edge.
func boxes(height, width int) []float32 {
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

// graph writes the detector as a model: "image" UINT8 [N,1,192,192] to "boxes" FP32 [N,P,4] in pixels and "scores" FP32
// [N,P], 0.5 and more where a digit's centre is believed to be.
func (d *detector) graph(name string) *onnxmodel.Graph {
	const n = onnxmodel.Symbolic
	g := onnxmodel.NewGraph("digits_"+name).Input("image", onnxmodel.Uint8, n, 1, Size, Size)
	g.Initializer("grey", []float32{greyScale})
	g.Node("Cast", []string{"image"}, []string{"levels"}, onnxmodel.AttrInt("to", int64(onnxmodel.Float32)))
	g.Node("Mul", []string{"levels", "grey"}, []string{"picture"})
	places, height, width := d.net.At(Size, Size).ExportPlaces(g, "d_", "picture")
	p := int64(height * width)
	g.InitializerInt64("flat", []int64{0, 2, p}, 3)
	g.Node("Reshape", []string{places, "flat"}, []string{"by_place"})
	// The chance is the logistic function of the difference of the two scores.
	g.Initializer("difference", []float32{-1, 1}, 1, 2)
	g.Node("MatMul", []string{"difference", "by_place"}, []string{"odds"})
	g.Initializer("bias", []float32{float32(-d.bias)})
	g.Node("Add", []string{"odds", "bias"}, []string{"weighed"})
	g.Node("Sigmoid", []string{"weighed"}, []string{"chances"})
	g.InitializerInt64("rows", []int64{0, p}, 2)
	g.Node("Reshape", []string{"chances", "rows"}, []string{"scores"})
	// The boxes are the same for every picture, so they are copied for each.
	g.Initializer("squares", boxes(height, width), 1, p, 4)
	g.Node("Shape", []string{"image"}, []string{"shape"})
	g.InitializerInt64("first", []int64{0}, 1)
	g.Node("Gather", []string{"shape", "first"}, []string{"count"})
	g.InitializerInt64("one_one", []int64{1, 1}, 2)
	g.Node("Concat", []string{"count", "one_one"}, []string{"copies"}, onnxmodel.AttrInt("axis", 0))
	g.Node("Tile", []string{"squares", "copies"}, []string{"boxes"})
	return g.Output("boxes", onnxmodel.Float32, n, p, 4).Output("scores", onnxmodel.Float32, n, p)
}
