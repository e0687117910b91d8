package ops

import (
	"slices"

	"github.com/sluice-serving/sluice/tensor"
)

var normalizeKind = kind{
	name: "normalize", doc: "changes values by a mean and a scale, of the last dimension's channels.",
	inputs:  []Port{{Name: "tensor", DTypes: pixels, Doc: "[n, ...]"}},
	outputs: []Port{{Name: "tensor", Doc: "FP32 of the same shape"}},
	options: []Option{meanOption, scaleOption},
	build:   func(s *settings) body { return &normalize{newLinear(s)} },
}

type normalize struct{ linear }

func (f *normalize) specs(in []*tensor.Spec) ([]tensor.Spec, error) {
	err := f.fits(lastOf(in[0].Shape))
	return []tensor.Spec{{DType: tensor.FP32, Shape: slices.Clone(in[0].Shape)}}, err
}

// lastOf is the last dimension of a shape; 1 of a scalar, -1 where it is not known.
func lastOf(shape []int64) int64 {
	switch {
	case shape == nil:
		return -1
	case len(shape) == 0:
		return 1
	}
	return shape[len(shape)-1]
}

func (f *normalize) run(in []*tensor.Tensor, _ *Call) ([]tensor.Tensor, []byte, error) {
	last := lastOf(in[0].Shape)
	if err := f.fits(last); err != nil {
		return nil, nil, err
	}
	out, err := zeros(tensor.FP32, slices.Clone(in[0].Shape)...)
	if err != nil {
		return nil, nil, err
	}
	p := pictures{data: in[0].Data, bytes: in[0].DType == tensor.Uint8}
	for i := range len(out.Data) / 4 {
		putFloat(out.Data, i, f.of(p.at(i), i%int(last)))
	}
	return []tensor.Tensor{out}, nil, nil
}
