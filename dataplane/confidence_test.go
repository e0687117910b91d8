package dataplane

import (
	"encoding/binary"
	"math"
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
		want    float64 // NaN for none
	}{
		{[]tensor.Tensor{label, chances}, 1, "", serving.ByMargin, 0.5},
		{[]tensor.Tensor{label, logits}, 1, "", serving.ByMargin, 0.5},
		{[]tensor.Tensor{logits}, 1, "", serving.ByMaximum, 0.7},
		{[]tensor.Tensor{chances}, 1, "", serving.ByEntropy, 1 - 0.80182/math.Log(3)},
		{[]tensor.Tensor{scores("p", 0.7, 0.3, 0.6, 0.4)}, 2, "", serving.ByMargin, 0.2},
		{[]tensor.Tensor{chances, scores("sure", 0.3)}, 1, "sure", serving.ByValue, 0.3},
		{[]tensor.Tensor{scores("big", 1000, 0, -1000)}, 1, "", serving.ByMargin, 1},
		{[]tensor.Tensor{label}, 1, "", serving.ByMargin, math.NaN()},
		{[]tensor.Tensor{chances}, 1, "other", serving.ByMargin, math.NaN()},
		{[]tensor.Tensor{chances}, 3, "", serving.ByMargin, math.NaN()},
		{[]tensor.Tensor{nan}, 1, "", serving.ByMargin, math.NaN()},
		{nil, 1, "", serving.ByMargin, math.NaN()},
	} {
		got, ok := Confidence(c.outputs, c.items, c.output, c.by)
		if ok == math.IsNaN(c.want) || ok && math.Abs(float64(got)-c.want) > 1e-4 {
			t.Errorf("%v by %v of %d items: %v, %v, want %v", c.outputs, c.by, c.items, got, ok, c.want)
		}
	}
}
