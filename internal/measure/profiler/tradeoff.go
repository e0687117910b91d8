package profiler

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Tradeoff is an accuracy and the machine time that it takes: queries answered by a variant and, where it is least sure
// of them, answered again by a better one.
type Tradeoff struct {
	First    string
	Second   string  // empty for one answer
	Share    float64 // of the queries, answered twice
	Time     float64 // of a machine, ms per query in the batches that carry most
	Accuracy float64
}

// Answers is how often queries are answered.
type Answers int

// How often queries are answered. Foretold is as Twice if it were known beforehand, at no cost, which queries a variant
// is unsure of, so that they have the second answer alone: the most that a predictor before the variants may bring (as
// in HADIS, arXiv 2509.00642).
const (
	Once Answers = iota
	Twice
	Foretold
)

// Tradeoffs returns the best that the variants of a device type give: the corners of the least machine time for every
// accuracy, ascending. Between two of them queries are divided. Variants count that have an accuracy, second answers
// where the confidence of the first was measured.
func (f *File) Tradeoffs(device string, answers Answers) []Tradeoff {
	time := make(map[string]float64)
	for _, p := range f.Points {
		if each := p.Mean / 1e3 / float64(p.Batch*p.Concurrency); p.DeviceType == device && !p.Interpolated {
			if least, ok := time[p.Variant]; !ok || each < least {
				time[p.Variant] = each
			}
		}
	}
	var list []Tradeoff
	for _, a := range f.Accuracies {
		if t, ok := time[a.Variant]; ok {
			list = append(list, Tradeoff{First: a.Variant, Time: t, Accuracy: a.Value})
		}
	}
	for k := range f.Confidences {
		own, ok := time[f.Confidences[k].Variant]
		if !ok || answers == Once {
			continue
		}
		for _, x := range f.Confidences[k].Cascades() {
			if t, ok := time[x.Second]; ok {
				x.Time = own + x.Share*t
				if answers == Foretold {
					x.Time -= x.Share * own
				}
				list = append(list, x)
			}
		}
	}
	return corners(list)
}

// Cascades lists those with the variant first, for each better variant and least confidence, without their time.
func (c *Confidence) Cascades() (out []Tradeoff) {
	for _, of := range slices.Sorted(maps.Keys(c.Bins[0].Others)) {
		x := Tradeoff{First: c.Variant, Second: of}
		for b := range c.Bins {
			x.Accuracy += c.Bins[b].Share * c.Bins[b].Accuracy
		}
		for b := range c.Bins {
			bin := &c.Bins[b]
			x.Share += bin.Share
			x.Accuracy += bin.Share * (bin.Others[of] - bin.Accuracy)
			out = append(out, x)
		}
	}
	return out
}

// corners returns the upper left corners of the convex hull of points.
func corners(list []Tradeoff) (out []Tradeoff) {
	slices.SortFunc(list, func(a, b Tradeoff) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(b.Accuracy, a.Accuracy), cmp.Compare(a.First, b.First),
			cmp.Compare(a.Second, b.Second))
	})
	for _, x := range list {
		if n := len(out); n > 0 && x.Accuracy <= out[n-1].Accuracy {
			continue
		}
		for n := len(out); n > 1; n-- {
			a, b := &out[n-2], &out[n-1]
			if (b.Accuracy-a.Accuracy)*(x.Time-a.Time) > (x.Accuracy-a.Accuracy)*(b.Time-a.Time) {
				break
			}
			out = out[:n-1]
		}
		out = append(out, x)
	}
	return out
}

// TimeFor returns the least machine time in ms per query for a mean accuracy, and the corner above it; infinite and nil
// where none of the corners is as accurate.
func TimeFor(corners []Tradeoff, accuracy float64) (float64, *Tradeoff) {
	for k := range corners {
		x := &corners[k]
		switch {
		case x.Accuracy < accuracy:
		case k == 0:
			return x.Time, x
		default:
			below := &corners[k-1]
			part := (accuracy - below.Accuracy) / (x.Accuracy - below.Accuracy)
			return below.Time + part*(x.Time-below.Time), x
		}
	}
	return math.Inf(1), nil
}
