package ops

import "github.com/sluice-serving/sluice/tensor"

var resizeKind = kind{
	name: "resize", doc: "makes pictures another size.",
	inputs: []Port{
		{
			Name: "image", DTypes: pixels, Ranks: []int{4},
			Doc: "pictures, [n, height, width, channels], or [n, channels, height, width] with layout nchw",
		},
	},
	outputs: []Port{
		{Name: "image", Doc: "[n, height, width, channels], or [n, channels, height, width] with layout nchw"},
	},
	options: append([]Option{
		{Name: "height", Doc: "height of a result in pixels"},
		{Name: "width", Doc: "width of a result in pixels"},
		{
			Name: "longest", Doc: "in place of height and width: the longer side of a result in pixels at most. " +
				"Pictures keep their proportions, and smaller ones their size",
		},
	}, pictureOptions...),
	build: func(s *settings) body {
		f := &resize{sampling: newSampling(s)}
		if f.height == 0 && f.width == 0 {
			if s.text("longest") == "" {
				s.bad("height", "is missing: give height and width, or longest")
				return f
			}
			f.longest = s.whole("longest", 1, maxSide)
			return f
		}
		if f.height == 0 || f.width == 0 || s.text("longest") != "" {
			s.bad("height", "and width belong together, without longest")
		}
		return f
	},
}

type resize struct {
	sampling
	longest int // 0 where height and width are given
}

// sizeOf returns the size of the results of pictures.
func (f *resize) sizeOf(p *pictures) size {
	if f.longest == 0 {
		return f.size
	}
	by := min(float64(f.longest)/float64(max(p.height, p.width)), 1)
	return size{f.rounded(by * float64(p.height)), f.rounded(by * float64(p.width))}
}

func (f *resize) specs(in []*tensor.Spec) ([]tensor.Spec, error) {
	n := int64(-1)
	if in[0].Shape != nil {
		n = in[0].Shape[0]
	}
	out, err := f.spec(n, in[0])
	return []tensor.Spec{out}, err
}

func (f *resize) run(in []*tensor.Tensor, _ *Call) ([]tensor.Tensor, []byte, error) {
	p := f.pictures(in[0])
	if err := p.check(); err != nil {
		return nil, nil, err
	}
	to := f.sizeOf(&p)
	out, err := f.results(p.n, p.channels, to, in[0].DType)
	if err != nil {
		return nil, nil, err
	}
	for k := range p.n {
		f.sample(&out, k, &p, k, box{0, 0, float64(p.width), float64(p.height)}, to.width)
	}
	return []tensor.Tensor{out}, nil, nil
}
