package dataplane

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

func scores(name string, values ...float32) tensor.Tensor {
	t := tensor.Tensor{Name: name, DType: tensor.FP32, Shape: []int64{1, int64(len(values))}}
	for _, v := range values {
		t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(v))
	}
	return t
}

// Probabilities of 0.7, 0.2 and 0.1 have a margin of 0.5 and an entropy of 0.802 of ln 3 = 1.099; logits give the same
// as their softmax. Of two items the less sure one counts. What is no score says nothing.
func TestConfidenceOfOutputs(t *testing.T) {
	label := tensor.Tensor{Name: "label", DType: tensor.Int64, Shape: []int64{1}, Data: make([]byte, 8)}
	chances := scores("p", 0.7, 0.2, 0.1)
	logits := scores("logits", float32(math.Log(0.7))+3, float32(math.Log(0.2))+3, float32(math.Log(0.1))+3)
	nan := scores("p", float32(math.NaN()), 1, 0)
	for _, c := range []struct {
		outputs []tensor.Tensor
		items   int
		output  string
		by      serving.ConfidenceBy
		want    []float32 // nil for none
	}{
		{[]tensor.Tensor{label, chances}, 1, "", serving.ByMargin, []float32{0.5}},
		{[]tensor.Tensor{label, logits}, 1, "", serving.ByMargin, []float32{0.5}},
		{[]tensor.Tensor{logits}, 1, "", serving.ByMaximum, []float32{0.7}},
		{[]tensor.Tensor{chances}, 1, "", serving.ByEntropy, []float32{1 - 0.80182/1.098612}},
		{[]tensor.Tensor{scores("p", 0.7, 0.3, 0.6, 0.4)}, 2, "", serving.ByMargin, []float32{0.4, 0.2}},
		{[]tensor.Tensor{chances, scores("sure", 0.3)}, 1, "sure", serving.ByValue, []float32{0.3}},
		{[]tensor.Tensor{scores("big", 1000, 0, -1000)}, 1, "", serving.ByMargin, []float32{1}},
		{[]tensor.Tensor{label}, 1, "", serving.ByMargin, nil},
		{[]tensor.Tensor{chances}, 1, "other", serving.ByMargin, nil},
		{[]tensor.Tensor{chances}, 3, "", serving.ByMargin, nil},
		{[]tensor.Tensor{nan}, 1, "", serving.ByMargin, nil},
		{nil, 1, "", serving.ByMargin, nil},
	} {
		got, ok := Confidence(nil, c.outputs, c.items, c.output, c.by)
		same := slices.EqualFunc(got, c.want, func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-4 })
		if ok == (c.want == nil) || ok && !same {
			t.Errorf("%v by %v of %d items: %v, %v, want %v", c.outputs, c.by, c.items, got, ok, c.want)
		}
	}
}
