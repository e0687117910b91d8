package ops

import (
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/tensor"
)

// maxKept bounds the boxes of one picture in the result.
const maxKept = 10_000

// nmsKind is greedy non-maximum suppression (Neubeck and van Gool, ICPR 2006): the best box is kept, and those that
// overlap it by more than a bound are removed; then the best of the remaining ones is kept, and so on.
var nmsKind = kind{
	name: "nms",
	doc: "keeps the best of boxes that overlap, best first (greedy non-maximum suppression); of equal scores the " +
		"first.",
	framed: true,
	inputs: []Port{
		{Name: "boxes", DTypes: floats, Ranks: []int{2, 3}, Doc: "[n, k, 4] of n pictures, or [k, 4] of one"},
		{
			Name: "scores", DTypes: floats, Ranks: []int{1, 2, 3},
			Doc: "[n, k] or [n, k, classes], or [k] or [k, classes] of one picture",
		},
	},
	outputs: []Port{
		{Name: "boxes", Doc: "[m, 4] FP32, of the first picture first"},
		{Name: "scores", Doc: "[m] FP32"},
		{Name: "classes", Doc: "[m] INT64: the class with the best score, the first of equal ones; 0 without classes"},
		{Name: "image_index", Doc: "[m] INT64: which picture of the query"},
		{Name: "index", Doc: "[m] INT64: which of the picture's k boxes"},
	},
	options: []Option{
		{
			Name: "iou", Default: "0.5",
			Doc: "boxes whose intersection over union with a kept one is larger are not kept, 0 to 1",
		},
		{Name: "score", Default: "0", Doc: "the least score that is kept"},
		{Name: "most", Default: "100", Doc: "how many boxes of a picture are kept at most"},
		{Name: "across_classes", Default: "false", Doc: "`true` lets boxes of one class suppress those of another"},
	},
	build: func(s *settings) body {
		return &nms{
			s.number("iou", 0, 1), float32(s.number("score", -math.MaxFloat32, math.MaxFloat32)),
			s.whole("most", 1, maxKept), s.boolean("across_classes"),
		}
	},
}

type nms struct {
	iou    float64
	score  float32
	most   int
	across bool
}

func (f *nms) specs(in []*tensor.Spec) ([]tensor.Spec, error) {
	if err := f.fits(in[0].Shape, in[1].Shape); err != nil {
		return nil, err
	}
	rows := func(d tensor.DType) tensor.Spec { return tensor.Spec{DType: d, Shape: []int64{-1}} }
	return []tensor.Spec{
		{DType: tensor.FP32, Shape: []int64{-1, 4}}, rows(tensor.FP32), rows(tensor.Int64), rows(tensor.Int64),
		rows(tensor.Int64),
	}, nil
}

// fits compares the shapes of boxes and scores, either of which may be unknown.
func (f *nms) fits(boxes, scores []int64) error {
	if err := checkBoxes(boxes); err != nil || boxes == nil || scores == nil {
		return err
	}
	lead := len(boxes) - 1
	if len(scores) != lead && len(scores) != lead+1 {
		return fmt.Errorf("boxes of shape %v and scores of shape %v do not go together: %s", boxes, scores,
			nmsKind.inputs[1].Doc)
	}
	for i := range lead {
		if err := checkEqual(fmt.Sprintf("dimension %d of scores", i), scores[i], boxes[i]); err != nil {
			return err
		}
	}
	if len(scores) == lead+1 && scores[lead] == 0 {
		return fmt.Errorf("scores of shape %v have no classes", scores)
	}
	return nil
}

// candidate is a box that may be kept.
type candidate struct {
	at    int // of the picture's boxes
	box   box
	score float32
	class int
}

func (f *nms) run(in []*tensor.Tensor, c *Call) ([]tensor.Tensor, []byte, error) {
	if err := f.fits(in[0].Shape, in[1].Shape); err != nil {
		return nil, nil, err
	}
	n, k := boxCounts(in[0])
	classes := 1
	if len(in[1].Shape) == len(in[0].Shape) {
		classes = int(in[1].Shape[len(in[1].Shape)-1])
	}
	var boxes, scores []float32
	var class, picture, index []int64
	for p := range n {
		for _, x := range f.keep(f.candidates(in[0].Data[16*p*k:], in[1].Data[4*p*k*classes:], k, classes)) {
			for _, v := range x.box {
				boxes = append(boxes, float32(v))
			}
			scores, class = append(scores, x.score), append(class, int64(x.class))
			picture, index = append(picture, int64(c.Offset+p)), append(index, int64(x.at))
		}
	}
	m := int64(len(scores))
	return []tensor.Tensor{
		float32s(boxes, m, 4), float32s(scores, m), int64s(class, m), int64s(picture, m), int64s(index, m),
	}, nil, nil
}

// candidates lists the boxes of a picture whose score is high enough, the best first.
func (f *nms) candidates(boxes, scores []byte, k, classes int) []candidate {
	var all []candidate
	for i := range k {
		best := 0
		for c := 1; c < classes; c++ {
			if better(float(scores, i*classes+c), float(scores, i*classes+best), c, best) < 0 {
				best = c
			}
		}
		x := candidate{at: i, box: boxAt(boxes, i), score: float(scores, i*classes+best), class: best}
		if x.score >= f.score && x.box.finite() { // a score that is not a number is not enough
			all = append(all, x)
		}
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	largest(order, len(order), func(i int) float32 { return all[i].score })
	out := make([]candidate, len(all))
	for to, from := range order {
		out[to] = all[from]
	}
	return out
}

// keep returns the boxes that do not overlap a better one that is kept.
func (f *nms) keep(sorted []candidate) (kept []candidate) {
	for i := 0; i < len(sorted) && len(kept) < f.most; i++ {
		x := &sorted[i]
		free := true
		for j := range kept {
			if (f.across || kept[j].class == x.class) && overlap(kept[j].box, x.box) > f.iou {
				free = false
				break
			}
		}
		if free {
			kept = append(kept, *x)
		}
	}
	return kept
}
