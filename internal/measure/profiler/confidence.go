package profiler

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// Confidence is how right a variant's answers were by how sure it was of them; see serving.Confidence.
type Confidence struct {
	Variant string          `json:"variant"`
	Output  string          `json:"output,omitempty"` // that tells; empty for the only one with scores
	By      string          `json:"by"`               // margin, maximum, entropy or value
	Samples int             `json:"samples"`
	Bins    []ConfidenceBin `json:"bins"` // ascending
}

// ConfidenceBin is the samples of which a variant was about as sure.
type ConfidenceBin struct {
	From     float64            `json:"from"`     // least confidence
	Share    float64            `json:"share"`    // of the samples
	Accuracy float64            `json:"accuracy"` // of the variant on them
	Others   map[string]float64 `json:"others"`   // and of more accurate variants on the same samples
}

// leastOfBin is how many samples a bin has at least: they tell a proportion to some percentage points.
const leastOfBin = 100

// binQuantiles are where bins begin. Most wrong answers are among those of which a variant is least sure.
var binQuantiles = [...]float64{0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8}

// Calibrate measures the confidence of one of some variants. sure is how sure it was of each sample's answer, right by
// variant how right the answers were, in [0, 1]. It returns false for too few samples, where confidences tell nothing
// apart, and for the most accurate variant.
func Calibrate(variant, output, by string, sure []float32, right map[string][]float64) (c Confidence, ok bool) {
	order := make([]int, len(sure))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sure[a], sure[b]) })
	begins := []int{0}
	for _, q := range binQuantiles[1:] {
		at := int(q * float64(len(order)))
		for at > 0 && at < len(order) && sure[order[at]] == sure[order[at-1]] {
			at++ // equal confidences are in one bin
		}
		if at-begins[len(begins)-1] >= leastOfBin && len(order)-at >= leastOfBin {
			begins = append(begins, at)
		}
	}
	if len(begins) < 2 {
		return c, false
	}
	sum := func(list []float64) (all float64) {
		for _, x := range list {
			all += x
		}
		return all
	}
	c = Confidence{Variant: variant, Output: output, By: by, Samples: len(sure)}
	better := slices.DeleteFunc(slices.Sorted(maps.Keys(right)), func(of string) bool {
		return sum(right[of]) <= sum(right[variant])
	})
	for b, from := range begins {
		to := len(order)
		if b+1 < len(begins) {
			to = begins[b+1]
		}
		mean := func(of string) (all float64) {
			for _, k := range order[from:to] {
				all += right[of][k]
			}
			return all / float64(to-from)
		}
		bin := ConfidenceBin{
			From: float64(sure[order[from]]), Share: float64(to-from) / float64(len(order)), Accuracy: mean(variant),
			Others: make(map[string]float64),
		}
		for _, of := range better {
			bin.Others[of] = mean(of)
		}
		c.Bins = append(c.Bins, bin)
	}
	return c, len(better) > 0
}

// NewConfidence returns a confidence as it is stored.
func NewConfidence(spec *serving.Spec, c *serving.Confidence) Confidence {
	out := Confidence{Variant: spec.Variants[c.Variant].Name, Output: c.Output, By: c.By.String(), Samples: 1}
	for _, b := range c.Bins {
		bin := ConfidenceBin{From: b.From, Share: b.Share, Accuracy: b.Accuracy, Others: make(map[string]float64)}
		for _, o := range b.Others {
			bin.Others[spec.Variants[o.Variant].Name] = o.Accuracy
		}
		out.Bins = append(out.Bins, bin)
	}
	return out
}

// SetConfidence adds a confidence, or replaces that of the same variant.
func (f *File) SetConfidence(c Confidence) {
	f.Confidences = put(f.Confidences, c, func(x Confidence) bool { return x.Variant == c.Variant })
}

// Of returns the confidence of a variant with the identifiers of a stage's variants, which id tells by name; those that
// it does not know are left out.
func (c *Confidence) Of(v serving.VariantID, id func(name string) (serving.VariantID, bool)) serving.Confidence {
	by, _ := serving.ParseConfidenceBy(c.By)
	out := serving.Confidence{Variant: v, Output: c.Output, By: by}
	for _, b := range c.Bins {
		bin := serving.ConfidenceBin{From: b.From, Share: b.Share, Accuracy: b.Accuracy}
		for name, accuracy := range b.Others {
			if o, ok := id(name); ok && o != v {
				bin.Others = append(bin.Others, serving.VariantAccuracy{Variant: o, Accuracy: accuracy})
			}
		}
		slices.SortFunc(bin.Others, func(a, b serving.VariantAccuracy) int { return int(a.Variant - b.Variant) })
		out.Bins = append(out.Bins, bin)
	}
	return out
}

func validConfidences(list []Confidence) error {
	seen := make(map[string]bool, len(list))
	for i := range list {
		c := &list[i]
		if _, ok := serving.ParseConfidenceBy(c.By); !ok {
			return fmt.Errorf("confidences[%d].by is %q, want margin, maximum, entropy or value", i, c.By)
		}
		if c.Variant == "" || seen[c.Variant] || len(c.Bins) == 0 || c.Samples < 1 {
			return fmt.Errorf("confidences[%d]: variant %q, %d bins of %d samples: want each variant once, with bins",
				i, c.Variant, len(c.Bins), c.Samples)
		}
		seen[c.Variant] = true
		sum := 0.0
		for k := range c.Bins {
			b := &c.Bins[k]
			sum += b.Share
			if !(b.Share >= 0 && b.Share <= 1) || !(b.Accuracy >= 0 && b.Accuracy <= 1) ||
				k > 0 && !(float32(b.From) > float32(c.Bins[k-1].From)) {
				return fmt.Errorf("confidences[%d].bins[%d]: from %v, share %v, accuracy %v: want ascending "+
					"confidences, and numbers in [0, 1]", i, k, b.From, b.Share, b.Accuracy)
			}
			for name, accuracy := range b.Others {
				if !(accuracy >= 0 && accuracy <= 1) {
					return fmt.Errorf("confidences[%d].bins[%d].others: that of %q is %v, want a number in [0, 1]", i,
						k, name, accuracy)
				}
			}
		}
		if sum < 1-1e-6 || sum > 1+1e-6 {
			return fmt.Errorf("confidences[%d]: the shares of its bins add up to %v, want 1", i, sum)
		}
	}
	return nil
}
