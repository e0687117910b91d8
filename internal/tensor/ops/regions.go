package ops

import (
	"cmp"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/tensor"
)

// regionsKind finds boxes in the maps of detectors that say of each pixel whether something is there, such as those of
// text (DB: Liao et al., AAAI 2020, §3.4). Boxes are upright: the paper's turn with the text.
var regionsKind = kind{
	name: "regions",
	doc: "finds the boxes of connected pixels with high scores, those further up first, of equal ones those further " +
		"left.",
	inputs: []Port{
		{
			Name: "scores", DTypes: floats, Ranks: []int{3, 4},
			Doc: "[n, height, width] or [n, 1, height, width], a map for each picture",
		},
	},
	outputs: []Port{
		{Name: "boxes", Doc: "[m, 4] FP32, of the first picture first"},
		{Name: "scores", Doc: "[m] FP32: the mean of the region's pixels"},
		{Name: "image_index", Doc: "[m] INT64: which picture of the query"},
	},
	options: []Option{
		{Name: "least", Default: "0.3", Doc: "the least score of a pixel of a region"},
		{Name: "score", Default: "0.6", Doc: "the least mean of a region's pixels"},
		{
			Name: "grow", Default: "1.5",
			Doc: "how far a box reaches beyond its region, in parts of its area by its circumference",
		},
		{Name: "smallest", Default: "3", Doc: "the least height and width of a region in pixels of the map"},
		{
			Name: "most", Default: "1000",
			Doc: "how many boxes of a picture are kept at most, those with the best scores",
		},
		{
			Name: "boxes", Default: "pixels",
			Doc: "`pixels` of the map, or `normalized`: x is a part of its width and y of its height",
		},
	},
	build: func(s *settings) body {
		return &regions{
			least: float32(s.number("least", -math.MaxFloat32, math.MaxFloat32)),
			score: float32(s.number("score", -math.MaxFloat32, math.MaxFloat32)), grow: s.number("grow", 0, 100),
			smallest: s.whole("smallest", 1, maxSide), most: s.whole("most", 1, 100_000),
			normalized: s.oneOf("boxes", "pixels", "normalized") == "normalized",
		}
	},
}

type regions struct {
	least, score   float32
	grow           float64
	smallest, most int
	normalized     bool
}

// region is one of a map, with its last pixels beyond its box.
type region struct {
	box   box
	score float32
}

func (f *regions) specs(in []*tensor.Spec) ([]tensor.Spec, error) {
	if err := f.check(in[0].Shape); err != nil {
		return nil, err
	}
	return []tensor.Spec{{DType: tensor.FP32, Shape: []int64{-1, 4}}, {DType: tensor.FP32, Shape: []int64{-1}},
		{DType: tensor.Int64, Shape: []int64{-1}}}, nil
}

func (*regions) check(shape []int64) error {
	if len(shape) == 4 {
		return checkEqual("the number of channels of scores", shape[1], 1)
	}
	return nil
}

func (f *regions) run(in []*tensor.Tensor, c *Call) ([]tensor.Tensor, []byte, error) {
	shape := in[0].Shape
	if err := f.check(shape); err != nil {
		return nil, nil, err
	}
	height, width := int(shape[len(shape)-2]), int(shape[len(shape)-1])
	boxes, scores, index := []float32{}, []float32{}, []int64{}
	seen := make([]bool, height*width)
	for k := range int(shape[0]) {
		if height*width == 0 {
			break
		}
		clear(seen)
		for _, r := range f.find(in[0].Data[4*k*height*width:], height, width, seen) {
			b := f.shown(r.box, height, width)
			boxes = append(boxes, float32(b[0]), float32(b[1]), float32(b[2]), float32(b[3]))
			scores, index = append(scores, r.score), append(index, int64(c.Offset+k))
		}
	}
	m := int64(len(scores))
	return []tensor.Tensor{float32s(boxes, m, 4), float32s(scores, m), int64s(index, m)}, nil, nil
}

// shown is a box as it is given: grown, within the map.
func (f *regions) shown(b box, height, width int) box {
	w, h := b[2]-b[0], b[3]-b[1]
	by := w * h * f.grow / (2 * (w + h))
	b = box{max(b[0]-by, 0), max(b[1]-by, 0), min(b[2]+by, float64(width)), min(b[3]+by, float64(height))}
	if f.normalized {
		b = box{b[0] / float64(width), b[1] / float64(height), b[2] / float64(width), b[3] / float64(height)}
	}
	return b
}

// find lists the regions of a map in reading order.
func (f *regions) find(data []byte, height, width int, seen []bool) (out []region) {
	m := scoreMap{data: data, height: height, width: width, least: f.least, seen: seen}
	for from := range height * width {
		if !m.enters(from) {
			continue
		}
		r := m.region()
		if b := r.box; r.score >= f.score && b[2]-b[0] >= float64(f.smallest) && b[3]-b[1] >= float64(f.smallest) {
			out = append(out, r)
		}
	}
	if len(out) > f.most {
		slices.SortStableFunc(out, func(a, b region) int { return cmp.Compare(b.score, a.score) })
		out = out[:f.most]
	}
	slices.SortStableFunc(out, func(a, b region) int {
		return cmp.Or(cmp.Compare(a.box[1], b.box[1]), cmp.Compare(a.box[0], b.box[0]))
	})
	return out
}

// scoreMap is a map while its regions are looked for.
type scoreMap struct {
	data          []byte
	height, width int
	least         float32
	seen          []bool // by pixel: it is of a region that was found
	open          []int  // pixels of the present region whose neighbours are to be looked at
}

// enters takes a pixel into the present region, unless it is of one already, or of none.
func (m *scoreMap) enters(at int) bool {
	if m.seen[at] || !(float(m.data, at) >= m.least) {
		return false
	}
	m.seen[at] = true
	m.open = append(m.open, at)
	return true
}

// region follows the region of the pixel that was entered.
func (m *scoreMap) region() region {
	left, top, right, bottom := m.width, m.height, 0, 0
	sum, n := 0.0, 0
	for len(m.open) > 0 {
		at := m.open[len(m.open)-1]
		m.open = m.open[:len(m.open)-1]
		y, x := at/m.width, at%m.width
		left, top, right, bottom = min(left, x), min(top, y), max(right, x+1), max(bottom, y+1)
		sum, n = sum+float64(float(m.data, at)), n+1
		for v := max(y-1, 0); v <= min(y+1, m.height-1); v++ {
			for u := max(x-1, 0); u <= min(x+1, m.width-1); u++ {
				m.enters(v*m.width + u)
			}
		}
	}
	return region{box{float64(left), float64(top), float64(right), float64(bottom)}, float32(sum / float64(n))}
}
