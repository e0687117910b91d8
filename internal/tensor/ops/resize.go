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
	options: pictureOptions,
	build:   func(s *settings) body { return &resize{newSampling(s)} },
}

type resize struct{ sampling }

func (f *resize) specs(in []*tensor.Spec) ([]tensor.Spec, error) {
	n := int64(-1)
	if in[0].Shape != nil {
		n = in[0].Shape[0]
	}
	return []tensor.Spec{f.spec(n, in[0])}, nil
}

func (f *resize) run(in []*tensor.Tensor, _ *Call) ([]tensor.Tensor, []byte, error) {
	p := f.pictures(in[0])
	if err := p.check(); err != nil {
		return nil, nil, err
	}
	out, err := f.results(p.n, p.channels, in[0].DType)
	if err != nil {
		return nil, nil, err
	}
	for k := range p.n {
		f.sample(&out, k, &p, k, box{0, 0, float64(p.width), float64(p.height)})
	}
	return []tensor.Tensor{out}, nil, nil
}
