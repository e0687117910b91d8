package ops

import (
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/tensor"
)

var cropKind = kind{
	name: "crop", doc: "cuts boxes out of pictures and makes every patch the same size.",
	inputs: []Port{
		{
			Name: "image", DTypes: pixels, Ranks: []int{4}, Whole: true,
			Doc: "pictures, [n, height, width, channels], or [n, channels, height, width] with layout nchw",
		},
		{
			Name: "boxes", DTypes: floats, Ranks: []int{2},
			Doc: "[m, 4]: what to cut out. Beyond the picture its border's pixels go on; a box without area, or with " +
				"a number that is not finite, gives zeros",
		},
		{
			Name: "image_index", DTypes: integers, Ranks: []int{1}, Optional: true,
			Doc: "[m]: which picture each box is of. Without it all boxes are of the one picture, or there are as " +
				"many pictures as boxes",
		},
	},
	outputs: []Port{
		{Name: "patches", Doc: "[m, height, width, channels], or [m, channels, height, width] with layout nchw"},
	},
	options: append([]Option{
		{Name: "height", Required: true, Doc: "height of a result in pixels"},
		{
			Name: "width", Doc: "width of a result in pixels. Without it boxes keep their proportions, results have " +
				"the width of the widest, and narrower ones end in zeros",
		},
		{Name: "widest", Default: "4096", Doc: "the largest width of a result where width is not given"},
		{
			Name: "boxes", Default: "pixels",
			Doc: "`pixels`, or `normalized`: x is a part of the picture's width and y of its height",
		},
	}, pictureOptions...),
	build: func(s *settings) body {
		return &crop{newSampling(s), s.oneOf("boxes", "pixels", "normalized") == "normalized",
			s.whole("widest", 1, maxSide)}
	},
}

type crop struct {
	sampling
	normalized bool
	widest     int
}

func (f *crop) specs(in []*tensor.Spec) ([]tensor.Spec, error) {
	if err := checkBoxes(in[1].Shape); err != nil {
		return nil, err
	}
	n := int64(-1)
	if in[1].Shape != nil {
		n = in[1].Shape[0]
	}
	out, err := f.spec(n, in[0])
	return []tensor.Spec{out}, err
}

func (f *crop) run(in []*tensor.Tensor, _ *Call) ([]tensor.Tensor, []byte, error) {
	p, boxes := f.pictures(in[0]), in[1]
	if err := checkBoxes(boxes.Shape); err != nil {
		return nil, nil, err
	}
	n := int(boxes.Shape[0])
	if err := p.check(); err != nil {
		return nil, nil, err
	}
	of, err := f.owners(n, p.n, in[2])
	if err != nil {
		return nil, nil, err
	}
	patches := f.patches(boxes, &p)
	to := f.size
	if to.width == 0 {
		to.width = f.multiple
		for _, b := range patches {
			up := (f.columns(b) + f.multiple - 1) / f.multiple * f.multiple
			to.width = max(to.width, min(up, maxSide))
		}
	}
	out, err := f.results(n, p.channels, to, in[0].DType)
	if err != nil {
		return nil, nil, err
	}
	for k, b := range patches {
		if b.area() > 0 {
			columns := to.width
			if f.width == 0 {
				columns = min(f.columns(b), to.width)
			}
			f.sample(&out, k, &p, of(k), b, columns)
		}
	}
	return []tensor.Tensor{out}, nil, nil
}

// patches returns the boxes in pixels; those that are not finite have no area.
func (f *crop) patches(boxes *tensor.Tensor, p *pictures) []box {
	out := make([]box, boxes.Shape[0])
	for k := range out {
		b := boxAt(boxes.Data, k)
		if f.normalized {
			b = box{
				b[0] * float64(p.width), b[1] * float64(p.height), b[2] * float64(p.width), b[3] * float64(p.height),
			}
		}
		if b.finite() && b.area() > 0 {
			out[k] = b
		}
	}
	return out
}

// columns is how wide a box is at the height of results, in its proportions; 1 for one without area.
func (f *crop) columns(b box) int {
	if b.area() <= 0 {
		return 1
	}
	wide := math.Round(float64(f.height) * (b[2] - b[0]) / (b[3] - b[1]))
	return int(min(max(wide, 1), float64(f.widest)))
}

// owners returns which picture each of n boxes is of.
func (f *crop) owners(n, pictures int, index *tensor.Tensor) (func(k int) int, error) {
	if index == nil {
		switch {
		case pictures == 1 || n == 0:
			return func(int) int { return 0 }, nil
		case pictures == n:
			return func(k int) int { return k }, nil
		}
		return nil, fmt.Errorf("%d boxes and %d pictures: give image_index to say which picture each box is of", n,
			pictures)
	}
	if err := checkEqual("the number of rows of image_index", index.Shape[0], int64(n)); err != nil {
		return nil, err
	}
	for k := range n {
		if at := integer(index, k); at < 0 || at >= int64(pictures) {
			return nil, fmt.Errorf("image_index[%d] is %d, there are %d pictures", k, at, pictures)
		}
	}
	return func(k int) int { return int(integer(index, k)) }, nil
}
