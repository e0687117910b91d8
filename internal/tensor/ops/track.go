package ops

import (
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/tensor"
)

// trackKind tracks boxes by their overlap alone (Bochinski, Eiselein and Sikora, AVSS 2017), without a motion model.
var trackKind = kind{
	name: "track",
	doc: "gives the boxes of a stream's frames ids that stay: a box keeps the id of the one of the last frame " +
		"that it overlaps most.",
	stateful: true, framed: true,
	inputs: []Port{
		{
			Name: "boxes", DTypes: floats, Ranks: []int{2, 3},
			Doc: "[k, 4] of a frame, at most 2000 of them, or [n, k, 4] of n frames that follow each other",
		},
	},
	outputs: []Port{
		{Name: "ids", Doc: "[k] or [n, k] INT64, from 1; 0 of a box that has a number that is not finite"},
		{Name: "ages", Doc: "[k] or [n, k] INT64: in how many frames the id was seen, this one included"},
	},
	options: []Option{
		{
			Name: "iou", Default: "0.3",
			Doc: "the least intersection over union with a box of the last frame to be the same thing, 0 to 1",
		},
		{Name: "lost", Default: "0", Doc: "for how many frames a thing may be out of sight and keep its id"},
		{
			Name: "most", Default: "1000",
			Doc: "how many things are remembered at most; those longest out of sight are forgotten first",
		},
	},
	build: func(s *settings) body {
		return &track{s.number("iou", 0, 1), s.whole("lost", 0, 10_000), s.whole("most", 1, maxTracks)}
	},
}

type track struct {
	iou        float64
	lost, most int
}

func (f *track) specs(in []*tensor.Spec) ([]tensor.Spec, error) {
	if err := checkBoxes(in[0].Shape); err != nil {
		return nil, err
	}
	var shape []int64
	if in[0].Shape != nil {
		shape = slices.Clone(in[0].Shape[:len(in[0].Shape)-1])
	}
	return []tensor.Spec{{DType: tensor.Int64, Shape: shape}, {DType: tensor.Int64, Shape: slices.Clone(shape)}}, nil
}

func (f *track) run(in []*tensor.Tensor, c *Call) ([]tensor.Tensor, []byte, error) {
	if err := checkBoxes(in[0].Shape); err != nil {
		return nil, nil, err
	}
	seen, err := readTracks(c.State)
	if err != nil {
		return nil, nil, err
	}
	n, k := boxCounts(in[0])
	if k > maxTracks {
		return nil, nil, fmt.Errorf("a frame has %d boxes, at most %d can be followed", k, maxTracks)
	}
	ids, ages := make([]int64, n*k), make([]int64, n*k)
	for i := range n {
		f.frame(&seen, in[0].Data[16*i*k:], ids[i*k:(i+1)*k], ages[i*k:(i+1)*k])
	}
	shape := in[0].Shape[:len(in[0].Shape)-1]
	return []tensor.Tensor{int64s(ids, slices.Clone(shape)...), int64s(ages, slices.Clone(shape)...)}, seen.write(), nil
}

// pair is a box and a track that it may belong to.
type pair struct {
	known, box int
	overlap    float64
}

// frame assigns the boxes of one frame to tracks and updates these. Pairs that overlap most come first, of equal ones
// that with the oldest track, then that with the first box.
func (f *track) frame(seen *tracks, data []byte, ids, ages []int64) {
	var pairs []pair
	for b := range ids {
		x := boxAt(data, b)
		if !x.finite() {
			continue
		}
		for t := range seen.list {
			if o := overlap(seen.list[t].box, x); o > 0 && o >= f.iou {
				pairs = append(pairs, pair{t, b, o})
			}
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		switch {
		case a.overlap > b.overlap:
			return -1
		case a.overlap < b.overlap:
			return 1
		case a.known != b.known:
			return a.known - b.known
		}
		return a.box - b.box
	})
	found := make([]bool, len(seen.list))
	for _, p := range pairs {
		if found[p.known] || ids[p.box] != 0 {
			continue
		}
		t := &seen.list[p.known]
		found[p.known] = true
		t.box, t.missed, t.age = boxAt(data, p.box), 0, t.age+1
		ids[p.box], ages[p.box] = int64(t.id), int64(t.age)
	}
	kept := seen.list[:0]
	for i, t := range seen.list {
		if !found[i] {
			t.missed++
		}
		if int(t.missed) <= f.lost {
			kept = append(kept, t)
		}
	}
	seen.list = kept
	for b := range ids {
		x := boxAt(data, b)
		if ids[b] != 0 || !x.finite() {
			continue
		}
		seen.last++
		ids[b], ages[b] = int64(seen.last), 1
		seen.list = append(seen.list, trackedBox{id: seen.last, age: 1, box: x})
	}
	seen.trim(f.most)
}

var errState = fmt.Errorf("the state is damaged: start the stream anew")
