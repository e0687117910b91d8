package dataplane

import (
	"math"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Confidence reads off the outputs of a query how sure a model is of its answer to each of so many items
// (serving.Confidence), and appends it to sure. output names the output; empty takes the first with several
// floating-point numbers for each item. It returns false for outputs that do not tell.
func Confidence(sure []float32, outputs []tensor.Tensor, items int, output string, by serving.ConfidenceBy) (
	[]float32, bool,
) {
	for k := range outputs {
		t := &outputs[k]
		size := t.DType.Size()
		if t.DType != tensor.FP32 && t.DType != tensor.FP64 || output != "" && t.Name != output || items < 1 {
			continue
		}
		n := len(t.Data) / size / items // numbers for each item
		if n < 1 || n == 1 && by != serving.ByValue {
			continue
		}
		for i := range items {
			x := confidenceOf(t, i*n, n, by)
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return sure, false
			}
			sure = append(sure, float32(x))
		}
		return sure, true
	}
	return sure, false
}

// sumsToOne is by how much the sum of numbers that are probabilities may differ from 1.
const sumsToOne = 1e-3

// confidenceOf is that of n numbers of a tensor. Numbers that are no probabilities are taken for their logarithms.
func confidenceOf(t *tensor.Tensor, from, n int, by serving.ConfidenceBy) float64 {
	size := t.DType.Size()
	at := func(k int) float64 { return t.DType.Number(t.Data[(from+k)*size:]) }
	most, second, sum, least := math.Inf(-1), math.Inf(-1), 0.0, math.Inf(1)
	for k := range n {
		x := at(k)
		if x > most {
			most, second = x, most
		} else {
			second = max(second, x)
		}
		sum, least = sum+x, min(least, x)
	}
	switch {
	case math.IsNaN(sum):
		return sum
	case by == serving.ByValue:
		return least
	}
	if least < 0 || math.Abs(sum-1) > sumsToOne {
		logs := at
		sum = 0
		for k := range n {
			sum += math.Exp(logs(k) - most)
		}
		highest := most
		at = func(k int) float64 { return math.Exp(logs(k)-highest) / sum }
		most, second = 1/sum, math.Exp(second-highest)/sum
	}
	switch by {
	case serving.ByMaximum:
		return most
	case serving.ByEntropy:
		entropy := 0.0
		for k := range n {
			if p := at(k); p > 0 {
				entropy -= p * math.Log(p)
			}
		}
		return 1 - entropy/math.Log(float64(n))
	}
	return most - second
}

// confidences returns engine.Input.Confidence of a batch that has ended; nil where some answer does not tell. Items of
// a query may be answered again one by one, and so each must have its row of every output. In graphs those that run
// together have one answer.
func (j *job) confidences() (sure []float32) {
	if j.confidence == nil {
		return nil
	}
	sure = make([]float32, 0, j.batch.Items)
	for k := range j.batch.Portions {
		x := &j.batch.Portions[k]
		var ok bool
		if sure, ok = Confidence(sure, x.Outputs, x.Items, j.confidence.Output, j.confidence.By); !ok ||
			x.Partial != nil || j.io == nil && x.Items > 1 && !inRows(x.Outputs, x.Items) {
			return nil
		}
	}
	return sure
}
