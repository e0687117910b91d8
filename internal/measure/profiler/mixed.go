package profiler

import (
	"bytes"
	"context"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/tensor"
)

// mixedShare is how far an output of a batch may be from that of an item that runs alone, relative to the largest
// number in it. Sums in another order differ by a millionth, numbers that are quantised with the range of a whole batch
// by a few hundredths; what is made of other items' numbers differs by as much as they do.
const mixedShare = 0.05

// mixed names an output in which two different items that run together have other answers than each alone: the model's
// first dimension is no batch of items, whatever its shapes say. It is "" for none. Models that answer
// differently each time are not judged, nor is one of which an item does not run: other checks find that.
func (p *profiler) mixed(ctx context.Context, s *profiledVariant) string {
	if p.cfg.Unsure == nil || !p.cfg.Unsure(s.v) {
		return ""
	}
	b, err := s.batchOf(2)
	if err != nil || len(b.Portions) != 2 {
		return ""
	}
	together := copyOf(b)
	if s.runner.Run(ctx, together) != nil {
		return ""
	}
	for i := range b.Portions {
		var alone [2][]tensor.Tensor
		for k := range alone {
			one := copyOf(b)
			one.Items, one.Portions = 1, one.Portions[i:i+1]
			if s.runner.Run(ctx, one) != nil {
				return ""
			}
			alone[k] = one.Portions[0].Outputs
		}
		if differing(alone[0], alone[1]) != "" {
			return ""
		}
		if name := differing(alone[0], together.Portions[i].Outputs); name != "" {
			return name
		}
	}
	return ""
}

// differing names the first output of which two runs have other values; "" for none.
func differing(a, b []tensor.Tensor) string {
	for k := range a {
		if k >= len(b) || !alike(&a[k], &b[k]) {
			return a[k].Name
		}
	}
	return ""
}

// alike reports whether two tensors have the same values, but for what mixedShare allows.
func alike(a, b *tensor.Tensor) bool {
	if a.DType != b.DType || !slices.Equal(a.Shape, b.Shape) || len(a.Data) != len(b.Data) {
		return false
	}
	if bytes.Equal(a.Data, b.Data) {
		return true
	}
	size := a.DType.Size()
	if size == 0 { // texts
		return false
	}
	largest, off := 0.0, 0.0
	for at := 0; at < len(a.Data); at += size {
		x, y := a.DType.Number(a.Data[at:]), b.DType.Number(b.Data[at:])
		if x == y && math.IsInf(x, 0) || math.IsNaN(x) && math.IsNaN(y) {
			continue
		}
		if off = max(off, math.Abs(x-y)); math.IsNaN(off) || math.IsInf(off, 0) {
			return false
		}
		largest = max(largest, math.Abs(x), math.Abs(y))
	}
	return off <= mixedShare*largest
}
