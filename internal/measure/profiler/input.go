package profiler

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
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
	guess   int  // of guesses
	guesses []guess
	length  *tensor.Length // nil where all inputs have one length
	counted bool           // the first dimension of inputs counts items
}

// with returns the source with another guess.
func (s *source) with(guess int) *source {
	out := *s
	out.guess = guess
	return &out
}

// guess is how inputs are made of which only the types and shapes are known.
type guess struct {
	length int64 // of open dimensions
	whole  func(*rand.Rand, int64) int64
}

// bits are 0 or 1: integers are usually indices, and few models have fewer than two entries.
func bits(rng *rand.Rand, _ int64) int64 { return int64(rng.Uint32N(2)) }

// ones suit integers that are steps, divisors, factors or counts.
func ones(*rand.Rand, int64) int64 { return 1 }

// ramp counts from 0: it suits axes, which must differ.
func ramp(_ *rand.Rand, at int64) int64 { return at }

// guesses are what is tried, in this order, until a model runs. The longer ones are for windows over sound, whose
// models do not take a single sample. No length but 1 is a size of a batch: what fits only where both are equal does
// not batch.
var guesses = []guess{{1, bits}, {1, ones}, {1, ramp}, {3, bits}, {3, ones}, {17, bits}, {17, ones}, {480, bits},
	{513, bits}, {2049, bits}}

func newSource(cfg *Config, v serving.VariantID) (*source, error) {
	s := &source{cfg: cfg, v: v, batched: true, guesses: guesses}
	if cfg.Length != nil {
		s.length = cfg.Length(v)
	}
	if s.length != nil {
		s.guesses = slices.Concat([]guess{{lengthGuess, bits}, {lengthGuess, ones}}, guesses)
	}
	var err error
	if cfg.RandomBatch != nil {
		parts, err := cfg.RandomBatch(s.rng(1), v, 1)
		if err != nil || parts != nil {
			s.whole = true
			if err == nil && s.length != nil && cfg.Tensors != nil {
				s.specs, s.counted, err = cfg.Tensors(v)
			}
			return s, err
		}
	}
	if cfg.Tensors == nil {
		return s, nil
	}
	s.specs, s.batched, err = cfg.Tensors(v)
	s.counted = s.batched
	return s, err
}

// rng returns random numbers that are the same whenever the variant's name and the batch size are the same: what is
// measured does not depend on the other variants.
func (s *source) rng(items int) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", s.cfg.Spec.Variants[s.v].Name, items)
	return rand.New(rand.NewPCG(s.cfg.Seed, h.Sum64()))
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
			t, err := s.guesses[s.guess].random(rng, &s.specs[i], s.batched, items)
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

// guessable reports whether other inputs can be tried where these fail: nobody has given them.
func (s *source) guessable() bool { return !s.whole && s.cfg.Input == nil && len(s.specs) > 0 }

// random returns a random input. Floats are in [0, 1). Bytes, which are usually pixels, have all values.
func (g *guess) random(rng *rand.Rand, s *tensor.Spec, batched bool, items int) (tensor.Tensor, error) {
	shape := slices.Clone(s.Shape)
	for i, d := range shape {
		if d < 0 {
			shape[i] = g.length
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
	for at := range n {
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
			one := g.whole(rng, at)
			if s.DType == tensor.Bool {
				one &= 1
			}
			t.Data = append(t.Data, binary.LittleEndian.AppendUint64(nil, uint64(one))[:s.DType.Size()]...)
		}
	}
	return t, nil
}
