package ops

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/tensor"
)

var windowKind = kind{
	name: "window", doc: "gives the last entries of a stream with every item, such as the samples of a sound.",
	stateful: true,
	inputs: []Port{
		{Name: "entries", DTypes: pixels, Doc: "[n, k, ...]: the items follow each other, and bring k entries each"},
	},
	outputs: []Port{
		{
			Name: "window",
			Doc:  "[n, length, ...]: the last entries up to the item's last; before the stream's first there are zeros",
		},
		{Name: "full", Doc: "[n] FP32: which part of the window the stream has filled, 0 to 1"},
	},
	options: []Option{{Name: "length", Required: true, Doc: "how many entries a window has"}},
	build:   func(s *settings) body { return &window{s.whole("length", 1, maxElements)} },
}

type window struct{ length int }

func (f *window) specs(in []*tensor.Spec) ([]tensor.Spec, error) {
	from := in[0].Shape
	if from == nil {
		return []tensor.Spec{{DType: in[0].DType}, {DType: tensor.FP32, Shape: []int64{-1}}}, nil
	}
	if len(from) < 2 {
		return nil, errNoEntries
	}
	to := slices.Clone(from)
	to[1] = int64(f.length)
	return []tensor.Spec{{DType: in[0].DType, Shape: to}, {DType: tensor.FP32, Shape: []int64{from[0]}}}, nil
}

var errNoEntries = errors.New("input \"entries\" has no second dimension, which counts them")

// A state is the format's version, the bytes of an entry, and the last entries.
const windowHead = 1 + 8

func (f *window) run(in []*tensor.Tensor, c *Call) ([]tensor.Tensor, []byte, error) {
	shape := in[0].Shape
	if len(shape) < 2 {
		return nil, nil, errNoEntries
	}
	each := count(shape[2:]) * in[0].DType.Size()
	kept, err := f.kept(c.State, each)
	if err != nil {
		return nil, nil, err
	}
	to := slices.Clone(shape)
	to[1] = int64(f.length)
	out, err := zeros(in[0].DType, to...)
	if err != nil {
		return nil, nil, err
	}
	n, per, most := int(shape[0]), int(shape[1])*each, f.length*each
	full := make([]float32, n)
	for i := range n {
		kept = append(kept, in[0].Data[i*per:(i+1)*per]...)
		kept = kept[max(len(kept)-most, 0):]
		copy(out.Data[(i+1)*most-len(kept):], kept)
		if most > 0 {
			full[i] = float32(len(kept)) / float32(most)
		}
	}
	state := binary.LittleEndian.AppendUint64([]byte{stateVersion}, uint64(each))
	return []tensor.Tensor{out, float32s(full, shape[0])}, append(state, kept...), nil
}

// kept returns a copy of the entries of a state.
func (f *window) kept(state []byte, each int) ([]byte, error) {
	if state == nil {
		return nil, nil
	}
	if len(state) < windowHead || state[0] != stateVersion {
		return nil, errState
	}
	if was := binary.LittleEndian.Uint64(state[1:]); was != uint64(each) {
		return nil, fmt.Errorf("an entry has %d bytes, those of the stream before had %d: start the stream anew", each,
			was)
	}
	kept := state[windowHead:]
	if each == 0 && len(kept) > 0 || each > 0 && len(kept)%each != 0 || len(kept) > f.length*each {
		return nil, errState
	}
	return slices.Clone(kept), nil
}
