package engine

import (
	"math"

	"github.com/sluice-serving/sluice/serving"
)

// doubts compares the confidences that variants have of their answers with those that were measured
// (serving.Confidence). Where the inputs have become others, what was measured does not say how right answers are: then
// every answer of the variant is the last, and has the variant's accuracy, until confidences are again as measured.
type doubts struct {
	*world
	out  *decisions
	seen []seen // by variant
}

// seen is the latest answers of a variant.
type seen struct {
	bins    []float64 // answers, older ones count less
	all     float64
	since   int // answers since the last comparison
	doubted bool
}

const (
	// doubtWindow is about how many answers count, fewDoubts how few say nothing, doubtEvery after how many they are
	// compared again.
	doubtWindow, fewDoubts, doubtEvery = 1000, 300, 50
	// doubtFrom is the total variation distance from which on two distributions of confidence differ, trustBelow that
	// below which they no longer do. By chance it is about 0.05 for 500 answers in ten bins.
	doubtFrom, trustBelow = 0.2, 0.12
)

// answered takes up the confidences of the items of an answer, and reports whether what was measured holds.
func (d *doubts) answered(c *serving.Confidence, sure []float32) (holds bool) {
	for _, x := range sure {
		holds = d.saw(c, x)
	}
	return holds
}

// saw takes up the confidence of an item's answer.
func (d *doubts) saw(c *serving.Confidence, confidence float32) (holds bool) {
	for len(d.seen) < len(d.spec.Variants) {
		d.seen = append(d.seen, seen{})
	}
	x := &d.seen[c.Variant]
	if len(x.bins) != len(c.Bins) {
		*x = seen{bins: make([]float64, len(c.Bins))}
		d.fleet.Doubt(c.Variant, false)
	}
	x.bins[c.At(confidence)]++
	x.all++
	if x.since++; x.since < doubtEvery || x.all < fewDoubts {
		return !x.doubted
	}
	x.since = 0
	distance := 0.0
	for b := range x.bins {
		distance += math.Abs(x.bins[b]/x.all-c.Bins[b].Share) / 2
	}
	switch {
	case !x.doubted && distance > doubtFrom:
		x.doubted = true
		d.out.ofVariant(DoubtConfidence, InputsDiffer, 0, c.Variant)
	case x.doubted && distance < trustBelow:
		x.doubted = false
		d.out.ofVariant(DoubtConfidence, InputsAsMeasured, 0, c.Variant)
	}
	d.fleet.Doubt(c.Variant, x.doubted)
	if x.all >= doubtWindow {
		for b := range x.bins {
			x.bins[b] /= 2
		}
		x.all /= 2
	}
	return !x.doubted
}

// forget forgets variants whose place is used again.
func (d *doubts) forget(fresh []serving.VariantID) {
	for _, v := range fresh {
		if int(v) < len(d.seen) {
			d.seen[v] = seen{}
		}
		d.fleet.Doubt(v, false)
	}
}
