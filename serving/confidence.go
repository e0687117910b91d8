package serving

import (
	"fmt"
	"math"
	"slices"
)

// Confidence is what samples have shown of the answers of a variant, by how sure it is of them: of the queries that it
// is sure of it is as right as larger variants are, and the others may be worth a second answer (a cascade, as in Viola
// and Jones 2001; CascadeServe, arXiv 2406.14424). Stages with state have none.
type Confidence struct {
	Variant VariantID
	// Output names the output that tells, empty for the only one that has scores of classes, and By how.
	Output string       `json:",omitempty"`
	By     ConfidenceBy `json:",omitempty"`
	// Bins divide the queries by confidence, ascending.
	Bins []ConfidenceBin
}

// ConfidenceBy is how the confidence of an answer is read off an output.
type ConfidenceBy uint8

// The ways. Scores are made probabilities first where they are not (softmax).
const (
	ByMargin  ConfidenceBy = iota // highest probability less the second
	ByMaximum                     // highest probability
	ByEntropy                     // 1 - entropy / its highest
	ByValue                       // the output is the confidence
)

var confidenceNames = [...]string{"margin", "maximum", "entropy", "value"}

// String returns the name that profile files use.
func (b ConfidenceBy) String() string { return confidenceNames[b] }

// ParseConfidenceBy is the inverse of String.
func ParseConfidenceBy(name string) (ConfidenceBy, bool) {
	at := slices.Index(confidenceNames[:], name)
	return ConfidenceBy(max(at, 0)), at >= 0
}

// ConfidenceBin is the queries of which a variant is about as sure.
type ConfidenceBin struct {
	From     float64 // least confidence; less than that of the first bin counts as it
	Share    float64 // of the queries
	Accuracy float64 // of the variant's answers to them
	// Others are other variants of the stage, with the accuracy of their answers to the same queries.
	Others []VariantAccuracy
}

// VariantAccuracy is the accuracy of a variant on some queries.
type VariantAccuracy struct {
	Variant  VariantID
	Accuracy float64
}

// Of returns the accuracy of another variant's answers to the queries of a bin; 0 where it is not known.
func (b *ConfidenceBin) Of(v VariantID) float64 {
	for k := range b.Others {
		if b.Others[k].Variant == v {
			return b.Others[k].Accuracy
		}
	}
	return 0
}

// Improves reports whether the answer of another variant is better than the one that there is.
func (b *ConfidenceBin) Improves(v VariantID) bool { return b.Of(v) > b.Accuracy }

// MostGain is by how much the answers of the best other variant are better; 0 where none are.
func (b *ConfidenceBin) MostGain() (most float64) {
	for _, o := range b.Others {
		most = max(most, o.Accuracy-b.Accuracy)
	}
	return most
}

// Improvable reports whether the answer of any other variant is better than the one that there is.
func (b *ConfidenceBin) Improvable() bool { return b.MostGain() > 0 }

// MayMeet reports whether a variant below an accuracy is sure enough of some of its answers that they have it.
func (s *Spec) MayMeet(v VariantID, accuracy float64) bool {
	c := s.Stages[s.Variants[v].Stage].Confidence(v)
	return c != nil && slices.ContainsFunc(c.Bins, func(b ConfidenceBin) bool { return b.Accuracy >= accuracy })
}

// At returns the index of the bin of a confidence.
func (c *Confidence) At(confidence float32) int {
	k := len(c.Bins) - 1
	for k > 0 && !(confidence >= float32(c.Bins[k].From)) {
		k--
	}
	return k
}

// Hint numbers what is known of the query of a task by the confidence of its first answer: the bins of all of a
// stage's Confidences, from 1 on. It is 0 where nothing is known.
type Hint int32

// Hint returns what a confidence of a variant tells; 0 where it has not been measured.
func (s *Stage) Hint(v VariantID, confidence float32) Hint {
	before := 0
	for k := range s.Confidences {
		c := &s.Confidences[k]
		if c.Variant == v {
			return Hint(before + c.At(confidence) + 1)
		}
		before += len(c.Bins)
	}
	return 0
}

// Hinted returns the bin of a hint; nil where there is none of the kind any more.
func (s *Stage) Hinted(h Hint) *ConfidenceBin {
	bin, _ := s.HintedAt(h)
	return bin
}

// HintedAt returns the bin of a hint and its position among those of its variant.
func (s *Stage) HintedAt(h Hint) (bin *ConfidenceBin, at int) {
	at = int(h) - 1
	for k := range s.Confidences {
		bins := s.Confidences[k].Bins
		if at >= 0 && at < len(bins) {
			return &bins[at], at
		}
		at -= len(bins)
	}
	return nil, at
}

// Confidence returns what is known of a variant's answers by their confidence; nil where nothing is.
func (s *Stage) Confidence(v VariantID) *Confidence {
	for k := range s.Confidences {
		if s.Confidences[k].Variant == v {
			return &s.Confidences[k]
		}
	}
	return nil
}

// translatedConfidences returns the confidences of variants that have other identifiers now, without those that have
// None.
func translatedConfidences(list []Confidence, to []VariantID) (out []Confidence) {
	for _, c := range list {
		if c.Variant = to[c.Variant]; c.Variant == None {
			continue
		}
		c.Bins = slices.Clone(c.Bins)
		for b := range c.Bins {
			y := &c.Bins[b]
			y.Others = slices.Clone(y.Others)
			for o := range y.Others {
				y.Others[o].Variant = to[y.Others[o].Variant]
			}
			y.Others = slices.DeleteFunc(y.Others, func(o VariantAccuracy) bool { return o.Variant == None })
		}
		out = append(out, c)
	}
	return out
}

// shareTolerance is by how much the shares of the bins may differ from 1 together.
const shareTolerance = 1e-6

// confidences checks those of a stage.
func (c *check) confidences(i int) {
	s := &c.spec.Stages[i]
	if len(s.Confidences) > 0 && s.Stateful {
		c.bad("stages[%d] %q: confidences are for stages without state", i, s.Name)
	}
	for k := range s.Confidences {
		x := &s.Confidences[k]
		where := fmt.Sprintf("stages[%d] %q: confidences[%d]", i, s.Name, k)
		if !slices.Contains(s.Variants, x.Variant) || int(x.By) >= len(confidenceNames) || len(x.Bins) == 0 {
			c.bad("%s: variant %d by %d with %d bins, want a variant of the stage and at least one bin", where,
				x.Variant, x.By, len(x.Bins))
		}
		sum := 0.0
		for b := range x.Bins {
			y := &x.Bins[b]
			sum += y.Share
			if !(y.Share >= 0) || !(y.Accuracy >= 0 && y.Accuracy <= 1) || math.IsNaN(y.From) ||
				math.IsInf(y.From, 0) || b > 0 && y.From <= x.Bins[b-1].From {
				c.bad("%s.bins[%d]: from %v, share %v, accuracy %v: want ascending bounds, and numbers in [0, 1]",
					where, b, y.From, y.Share, y.Accuracy)
			}
			for _, o := range y.Others {
				if !slices.Contains(s.Variants, o.Variant) || o.Variant == x.Variant ||
					!(o.Accuracy >= 0 && o.Accuracy <= 1) {
					c.bad("%s.bins[%d]: accuracy %v of variant %d, want other variants of the stage, in [0, 1]",
						where, b, o.Accuracy, o.Variant)
				}
			}
		}
		if math.Abs(sum-1) > shareTolerance {
			c.bad("%s: the shares of the bins add up to %v, want 1", where, sum)
		}
	}
}
