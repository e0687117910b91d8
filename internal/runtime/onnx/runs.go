//go:build cgo

package onnx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/dataplane"
)

// runWorth is what a run of its own costs beside its elements, in items x length: operators have to start, and work
// slower on few rows. Queries are split into the runs that cost least. Lengths 100, 97, 90, 20, 5 of one item each:
//
//	one run for all               16 + 5*100                  516
//	a run for each                5*16 + 312                  392
//	100 97 90 | 20 5              2*16 + 3*100 + 2*20         372
//	100 97 | 90 | 20 5            3*16 + 2*100 + 90 + 2*20    378
//
// So padding is at most 16 for each run that it saves. A bound on its share would join long queries, and gain nothing
// (BenchmarkLengths).
const runWorth = 16

// runAll answers the parts of a batch, in as many runs as their shapes ask for.
func (s *session) runAll(ctx context.Context, b *dataplane.Batch) error {
	uniform := true
	for i := 1; i < len(b.Portions) && uniform; i++ {
		uniform = s.m.sameRows(&b.Portions[0], &b.Portions[i], nil)
	}
	if uniform {
		return s.run(ctx, b.Portions, b.Items)
	}
	for _, g := range s.m.groups(b.Portions) {
		err := s.runGroup(ctx, b.Portions, g)
		if errors.Is(err, errPadded) {
			if !s.m.padding.refused.Swap(true) && s.m.tell != nil {
				s.m.tell(fmt.Errorf("model %s: %w: other lengths run one after the other", s.m.path, err))
			}
			return s.runAll(ctx, b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// runGroup answers those of the parts that are at some places. The first padded batch of a model is also its proof.
func (s *session) runGroup(ctx context.Context, parts []dataplane.Portion, at []int) error {
	group, items := make([]dataplane.Portion, len(at)), 0
	for k, i := range at {
		group[k] = parts[i]
		items += parts[i].Items
	}
	last := &group[len(group)-1]
	unproved := s.m.padded(group) && !s.m.padding.proved.Load()
	if unproved {
		for k := range group {
			group[k].Wanted = nil // the proof is of every output
		}
	}
	if err := s.run(ctx, group, items); err != nil {
		return err
	}
	if unproved {
		if err := s.prove(ctx, last); err != nil {
			return err
		}
	}
	for k, i := range at {
		parts[i].Outputs = group[k].Outputs
	}
	return nil
}

// groups returns the parts that run together, by place. The first part of a group is the longest.
func (m *model) groups(parts []dataplane.Portion) (out [][]int) {
	lengths := m.lengths(parts)
	for i := range parts {
		k := slices.IndexFunc(out, func(g []int) bool {
			if lengths == nil || lengths[g[0]] == 0 && lengths[i] == 0 {
				return m.sameRows(&parts[g[0]], &parts[i], nil)
			}
			return lengths[g[0]] > 0 && lengths[i] > 0 && m.sameRows(&parts[g[0]], &parts[i], m.padding.inputs)
		})
		if k < 0 {
			k, out = len(out), append(out, nil)
		}
		out[k] = append(out[k], i)
	}
	if lengths == nil {
		return out
	}
	var runs [][]int
	for _, g := range out {
		slices.SortStableFunc(g, func(a, b int) int { return cmp.Compare(lengths[b], lengths[a]) })
		runs = append(runs, split(g, parts, lengths)...)
	}
	return runs
}

// split splits a group, the longest first, into the runs that cost least.
func split(g []int, parts []dataplane.Portion, lengths []int64) (out [][]int) {
	type plan struct {
		cost int64
		next int // where its second run begins
	}
	best := make([]plan, len(g)+1) // by where it begins
	for from := len(g) - 1; from >= 0; from-- {
		items := int64(0)
		best[from].cost = math.MaxInt64
		for k := from; k < len(g); k++ {
			items += int64(parts[g[k]].Items)
			if cost := runWorth + items*lengths[g[from]] + best[k+1].cost; cost < best[from].cost {
				best[from] = plan{cost, k + 1}
			}
		}
	}
	for from := 0; from < len(g); from = best[from].next {
		out = append(out, g[from:best[from].next])
	}
	return out
}

// padded reports whether the parts of a run differ in their lengths. The first is the longest, the last the shortest.
func (m *model) padded(parts []dataplane.Portion) bool {
	return m.padding != nil && m.lengthIn(&parts[0]) != m.lengthIn(&parts[len(parts)-1])
}
