package dataplane

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/pipeline"
	"github.com/sluice-serving/sluice/tensor"
)

// scenes is an app of a detector, a cutter that takes the image and the boxes, and a classifier.
func scenes() (*serving.Spec, []pipeline.Wiring) {
	spec := &serving.Spec{
		Apps: []serving.App{{Name: "scenes", Stages: []serving.StageID{0, 1, 2}}},
		Stages: []serving.Stage{
			{Name: "detect", Next: []serving.Edge{{To: 1, FanOut: 2, Rows: "boxes"}}},
			{Name: "cut", Joins: 1, Next: []serving.Edge{{To: 2, FanOut: 1}}},
			{Name: "read", Joins: 1},
		},
	}
	return spec, []pipeline.Wiring{
		{
			Takes: map[string]string{"pixels": "image"}, Gives: map[string]string{"b": "boxes"},
			Inputs: specs("pixels"), Outputs: specs("b", "score", "count"),
		},
		{Inputs: specs("image", "boxes"), Outputs: specs("crops")},
		{Takes: map[string]string{"digit": "crops"}, Inputs: specs("digit"), Outputs: specs("labels")},
	}
}

func specs(names ...string) (out []tensor.Spec) {
	for _, n := range names {
		out = append(out, tensor.Spec{Name: n, DType: tensor.Uint8, Shape: []int64{-1, 2}})
	}
	return out
}

// rows returns a tensor of n rows of two bytes. Row k holds the number first+k twice.
func rows(name string, first, n int) tensor.Tensor {
	t := tensor.Tensor{Name: name, DType: tensor.Uint8, Shape: []int64{int64(n), 2}}
	for k := range n {
		t.Data = append(t.Data, byte(first+k), byte(first+k))
	}
	return t
}

func started(t *testing.T, spec *serving.Spec, w []pipeline.Wiring, request ...tensor.Tensor) *execution {
	t.Helper()
	g, err := newGraph(spec, w, 0)
	if err != nil {
		t.Fatal(err)
	}
	return newExecution(g, &Request{Items: 1, Inputs: request})
}

// pass has a stage end well for some of its items, with the given outputs.
func pass(t *testing.T, x *execution, at, offset, items int, outputs ...tensor.Tensor) partResult {
	t.Helper()
	r, err := x.check(at, &Portion{Items: items, Outputs: outputs}, 100, nil)
	if err != nil {
		t.Fatal(err)
	}
	x.store(at, offset, items, r, true)
	return r
}

func written(tensors []tensor.Tensor) string {
	var b strings.Builder
	for _, x := range tensors {
		fmt.Fprintf(&b, "%s%v%v ", x.Name, x.Shape, x.Data)
	}
	return strings.TrimSpace(b.String())
}

// An image of 3 rows has 3 boxes. A part of the boxes gets its rows of the boxes and the whole image, although the
// image has as many rows. Parts may end in any order. Tensors that nothing needs any more are dropped.
func TestExecution(t *testing.T) {
	spec, w := scenes()
	image := rows("image", 50, 3)
	x := started(t, spec, w, image)
	expect := func(at, offset, items int, want string) {
		t.Helper()
		in, err := x.inputs(at, offset, items)
		if got := written(in); err != nil || got != want {
			t.Errorf("stage %d, items %d to %d: %q, %v, want %q", at, offset, offset+items, got, err, want)
		}
	}
	expect(0, 0, 1, "pixels[3 2][50 50 51 51 52 52]")
	r := pass(t, x, 0, 0, 1, rows("b", 1, 3), rows("score", 20, 3), rows("count", 9, 1))
	if !slices.Equal(r.sent, []int32{3}) {
		t.Errorf("%v items go on, want 3", r.sent)
	}
	expect(1, 0, 2, "image[3 2][50 50 51 51 52 52] boxes[2 2][1 1 2 2]")
	expect(1, 2, 1, "image[3 2][50 50 51 51 52 52] boxes[1 2][3 3]")
	if i := find(x.stages[0].joined, "score"); x.stages[0].joined[i].Data != nil {
		t.Error("scores are held, which no stage takes")
	}
	pass(t, x, 1, 2, 1, rows("crops", 33, 1))
	if x.request[0].Data == nil {
		t.Error("the image is dropped, and a part of the cutter needs it")
	}
	pass(t, x, 1, 0, 2, rows("crops", 31, 2))
	if x.request[0].Data != nil || x.stages[0].joined[0].Data != nil {
		t.Error("image or boxes are held, which no stage needs any more")
	}
	if image.Data == nil {
		t.Error("the caller's tensor is changed")
	}
	expect(2, 1, 2, "digit[2 2][32 32 33 33]")
	pass(t, x, 2, 0, 3, rows("labels", 41, 3))
	if got := written(x.answer()); got != "labels[3 2][41 41 42 42 43 43]" {
		t.Errorf("the answer is %q", got)
	}
	if x.stages[1].joined[0].Data != nil {
		t.Error("crops are held")
	}
}

// When the detector finds nothing, the stages behind it are passed over, and the answer has no rows.
func TestStagesBehindNothingFoundArePassedOver(t *testing.T) {
	spec, w := scenes()
	x := started(t, spec, w, rows("image", 1, 2))
	if r := pass(t, x, 0, 0, 1, rows("b", 0, 0), rows("score", 0, 0), rows("count", 0, 1)); r.sent[0] != 0 {
		t.Error(r.sent)
	}
	if got := written(x.answer()); got != "labels[0 2][]" {
		t.Errorf("the answer is %q", got)
	}
	if x.request[0].Data != nil {
		t.Error("the image is held")
	}
	w[2].Outputs = nil
	x = started(t, spec, w, rows("image", 1, 2))
	pass(t, x, 0, 0, 1, rows("b", 0, 0), rows("score", 0, 0), rows("count", 0, 1))
	if got := x.answer(); len(got) != 0 {
		t.Errorf("%v of a stage whose outputs are not known", got)
	}
}

// How long items are at the next stage is told by the tensors that it takes: what this stage gives, or what came with
// the request.
func TestLengthsAtTheNextStage(t *testing.T) {
	spec, w := scenes()
	w[1].Length = &tensor.Length{Input: "image", Axes: []int{0, 1}}
	w[2].Length = &tensor.Length{Input: "digit", Axes: []int{1}}
	x := started(t, spec, w, rows("image", 0, 5))
	crops := rows("crops", 0, 3)
	crops.Shape = []int64{1, 6}
	for at, c := range []struct {
		outputs []tensor.Tensor
		want    []int32
	}{
		{[]tensor.Tensor{rows("boxes", 0, 2)}, []int32{10}}, {[]tensor.Tensor{crops}, []int32{6}}, {nil, nil},
	} {
		if got := x.lengths(at, c.outputs); !slices.Equal(got, c.want) {
			t.Errorf("behind stage %d items have lengths %v, want %v", at, got, c.want)
		}
	}
	if got := x.lengths(1, nil); !slices.Equal(got, []int32{0}) {
		t.Errorf("without the tensor lengths are %v", got)
	}
}

// A later stage that gives a tensor of the same name replaces the earlier tensor for the stages behind it. Branches do
// not see each other's. The tensor that was replaced is dropped.
func TestLatestStageGivesTheTensor(t *testing.T) {
	spec := &serving.Spec{Apps: []serving.App{
		{Name: "a", Stages: []serving.StageID{0, 1, 2, 3}},
	}, Stages: []serving.Stage{
		{Name: "s0", Next: []serving.Edge{{To: 1, FanOut: 1}, {To: 2, FanOut: 1}}},
		{Name: "s1", Joins: 1, Next: []serving.Edge{{To: 3, FanOut: 1}}},
		{Name: "s2", Joins: 1, Next: []serving.Edge{{To: 3, FanOut: 1}}},
		{Name: "s3", Joins: 2},
	}}
	w := make([]pipeline.Wiring, 4)
	for k := range w {
		w[k] = pipeline.Wiring{Inputs: specs("x"), Outputs: specs("x")}
	}
	for _, order := range [][]int{{1, 2}, {2, 1}} {
		x := started(t, spec, w, rows("x", 1, 1))
		pass(t, x, 0, 0, 1, rows("x", 2, 1))
		if x.request[0].Data != nil {
			t.Error("the request's x is held")
		}
		for _, at := range order {
			in, err := x.inputs(at, 0, 1)
			if got := written(in); err != nil || got != "x[1 2][2 2]" {
				t.Errorf("order %v, stage %d: %q, %v", order, at, got, err)
			}
			pass(t, x, at, 0, 1, rows("x", 2+at, 1))
		}
		if in, err := x.inputs(3, 0, 1); err != nil || written(in) != "x[1 2][4 4]" {
			t.Errorf("order %v: %q, %v, want what stage 2 gives", order, written(in), err)
		}
		if x.stages[1].joined[0].Data != nil {
			t.Error("x of stage 1 is held, though that of stage 2 has taken its place")
		}
	}
}

func TestWrongOutputsAreRefused(t *testing.T) {
	spec, w := scenes()
	short := rows("b", 0, 3)
	short.Data = short.Data[:5]
	scalar := tensor.Tensor{Name: "b", DType: tensor.Uint8, Shape: []int64{}, Data: []byte{1}}
	for want, outputs := range map[string][]tensor.Tensor{
		`gives no tensor "boxes" with rows that it could send to "cut"`: {rows("score", 0, 3)},
		`5 bytes of data`: {short},
		`stage "detect" gives no tensor "boxes" with rows`:                            {scalar},
		`101 rows for "cut", of one query at most 100 are taken (server.limits.rows)`: {rows("b", 0, 101)},
	} {
		x := started(t, spec, w, rows("image", 1, 2))
		if _, err := x.check(0, &Portion{Items: 1, Outputs: outputs}, 100, nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	x := started(t, spec, w, rows("picture", 1, 2))
	if _, err := x.inputs(0, 0, 1); err == nil ||
		!strings.Contains(err.Error(), `takes tensor "image" as its input "pixels"`) {
		t.Error(err)
	}
	// Parts of one query cannot be joined, whether they run in one batch or in two.
	x = started(t, spec, w, rows("image", 1, 2))
	pass(t, x, 0, 0, 1, rows("b", 1, 3), rows("score", 20, 3), rows("count", 9, 1))
	wide := rows("crops", 1, 1)
	wide.Shape, wide.Data = []int64{1, 1}, wide.Data[:1]
	first, err := x.check(1, &Portion{Items: 1, Outputs: []tensor.Tensor{rows("crops", 1, 1)}}, 100, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.check(1, &Portion{Items: 2, Outputs: []tensor.Tensor{wide}}, 100, []partResult{first}); err == nil ||
		!strings.Contains(err.Error(), "only the first dimension may differ") {
		t.Error(err)
	}
	x.store(1, 0, 1, first, true)
	if _, err := x.check(1, &Portion{Items: 2, Outputs: []tensor.Tensor{wide}}, 100, nil); err == nil ||
		!strings.Contains(err.Error(), "only the first dimension may differ") {
		t.Error(err)
	}
	if _, err := x.check(1, &Portion{Items: 2, Outputs: nil}, 100, nil); err == nil {
		t.Error("a part without outputs was joined with one that has some")
	}
	// Two parts that have too many rows together.
	spec.Stages[1].Next[0].Rows = "crops"
	x = started(t, spec, w, rows("image", 1, 2))
	pass(t, x, 0, 0, 1, rows("b", 1, 2), rows("score", 20, 2), rows("count", 9, 1))
	first, err = x.check(1, &Portion{Items: 1, Outputs: []tensor.Tensor{rows("crops", 1, 60)}}, 100, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.check(1, &Portion{Items: 1, Outputs: []tensor.Tensor{rows("crops", 1, 41)}}, 100,
		[]partResult{first}); err == nil || !strings.Contains(err.Error(), "101 rows") {
		t.Error(err)
	}
}

// Stages of which no inputs are known take all outputs of the stages before them.
func TestStagesOfUnknownTensorsTakeAll(t *testing.T) {
	spec, _ := scenes()
	x := started(t, spec, nil, rows("image", 1, 1))
	pass(t, x, 0, 0, 1, rows("boxes", 1, 2), rows("score", 20, 2), rows("map", 9, 5))
	in, err := x.inputs(1, 1, 1)
	if err != nil || written(in) != "boxes[1 2][2 2] score[1 2][21 21] map[5 2][9 9 10 10 11 11 12 12 13 13]" {
		t.Errorf("%q, %v", written(in), err)
	}
	if !bytes.Equal(in[0].Data, []byte{2, 2}) || x.request[0].Data != nil {
		t.Error("the image is held, which no stage takes")
	}
}
