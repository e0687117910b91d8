package profiler

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// maxInputElements is the most elements of a random input.
const maxInputElements = 1 << 28

// source makes the batches of one variant.
type source struct {
	cfg     *Config
	v       serving.VariantID
	specs   []tensor.Spec
	batched bool
	whole   bool // Config.RandomBatch makes its batches
}

func newSource(cfg *Config, v serving.VariantID) (*source, error) {
	s := &source{cfg: cfg, v: v, batched: true}
	var err error
	if cfg.RandomBatch != nil {
		parts, err := cfg.RandomBatch(s.rng(1), v, 1)
		if err != nil || parts != nil {
			s.whole = true
			return s, err
		}
	}
	if cfg.Tensors == nil {
		return s, nil
	}
	s.specs, s.batched, err = cfg.Tensors(v)
	return s, err
}

// rng returns random numbers that are the same whenever a batch size is the same.
func (s *source) rng(items int) *rand.Rand {
	return rand.New(rand.NewPCG(s.cfg.Seed, uint64(s.v)<<32|uint64(items)))
}

// batch returns a batch of items queries of one item each. A variant that does not batch gets one query.
func (s *source) batch(items int) (*dataplane.Batch, error) {
	if s.whole {
		parts, err := s.cfg.RandomBatch(s.rng(items), s.v, items)
		return &dataplane.Batch{ID: 1, Variant: s.v, Items: items, Portions: parts}, err
	}
	var inputs []tensor.Tensor
	if s.cfg.Input != nil {
		inputs = s.cfg.Input(s.v, items)
	} else {
		rng := s.rng(items)
		for i := range s.specs {
			t, err := random(rng, &s.specs[i], s.batched, items)
			if err != nil {
				return nil, err
			}
			inputs = append(inputs, t)
		}
	}
	b := &dataplane.Batch{ID: 1, Variant: s.v, Items: items}
	if !s.batched {
		b.Portions = []dataplane.Portion{{Query: 1, Items: items, Inputs: inputs}}
		return b, nil
	}
	for i := range items {
		p := dataplane.Portion{Query: serving.QueryID(i + 1), Items: 1}
		for k := range inputs {
			row, err := inputs[k].Rows(int64(i), int64(i+1))
			if err != nil {
				return nil, fmt.Errorf("inputs for %d items: %w", items, err)
			}
			p.Inputs = append(p.Inputs, row)
		}
		b.Portions = append(b.Portions, p)
	}
	return b, nil
}

// copyOf returns a batch that can run at the same time as b. They share inputs, but not outputs.
func copyOf(b *dataplane.Batch) *dataplane.Batch {
	c := *b
	c.Portions = slices.Clone(b.Portions)
	return &c
}

// random returns a random input. Floats are in [0, 1). Bytes, which are usually pixels, have all values. Other integers
// are 0 or 1: they are usually indices, and few models have fewer than two entries.
func random(rng *rand.Rand, s *tensor.Spec, batched bool, items int) (tensor.Tensor, error) {
	shape := slices.Clone(s.Shape)
	for i, d := range shape {
		if d < 0 {
			shape[i] = 1
		}
	}
	if batched && len(shape) > 0 {
		shape[0] = int64(items)
	}
	n, err := tensor.Elements(shape, maxInputElements)
	if err != nil {
		return tensor.Tensor{}, fmt.Errorf("input %q: %w", s.Name, err)
	}
	t := tensor.Tensor{
		Name: s.Name, DType: s.DType, Shape: shape, Data: make([]byte, 0, n*int64(max(1, s.DType.Size()))),
	}
	for range n {
		switch s.DType {
		case tensor.Uint8:
			t.Data = append(t.Data, byte(rng.Uint32()))
		case tensor.FP16: // [0.5, 1): one exponent, all fractions
			t.Data = binary.LittleEndian.AppendUint16(t.Data, 0x3800|uint16(rng.Uint32N(1<<10)))
		case tensor.BF16:
			t.Data = binary.LittleEndian.AppendUint16(t.Data, 0x3f00|uint16(rng.Uint32N(1<<7)))
		case tensor.FP32:
			t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(rng.Float32()))
		case tensor.FP64:
			t.Data = binary.LittleEndian.AppendUint64(t.Data, math.Float64bits(rng.Float64()))
		case tensor.Bytes:
			t.Data = tensor.AppendBytes(t.Data, fmt.Appendf(nil, "%08d", rng.Uint32N(1e8)))
		default:
			var one [8]byte
			one[0] = byte(rng.Uint32N(2))
			t.Data = append(t.Data, one[:s.DType.Size()]...)
		}
	}
	return t, nil
}
