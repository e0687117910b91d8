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
	"github.com/sluice-serving/sluice/serving"
)

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
	of := make([]serving.Run, len(g))
	for k, i := range g {
		of[k] = serving.Run{Items: parts[i].Items, Length: int32(min(lengths[i], math.MaxInt32))}
	}
	from := 0
	for _, to := range serving.SplitRuns(of) {
		out, from = append(out, g[from:to]), to
	}
	return out
}

// padded reports whether the parts of a run differ in their lengths. The first is the longest, the last the shortest.
func (m *model) padded(parts []dataplane.Portion) bool {
	return m.padding != nil && m.lengthIn(&parts[0]) != m.lengthIn(&parts[len(parts)-1])
}
