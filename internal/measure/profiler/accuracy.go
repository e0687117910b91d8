package profiler

import (
	"fmt"
	"slices"
)

// How an accuracy was measured.
const (
	ByLabels    = "labels"    // share of labelled samples whose class is right
	ByScore     = "score"     // mean of the scores that a command gave
	ByAgreement = "agreement" // share of inputs on which a variant says what the reference says
)

// Accuracy is how right the answers of a variant were.
type Accuracy struct {
	Variant string  `json:"variant"`
	How     string  `json:"how"`   // ByLabels, ByScore or ByAgreement
	Value   float64 `json:"value"` // in [0, 1]
	Samples int     `json:"samples"`
	// Reference is the variant that the answers were compared with; empty for other ways. Its own accuracy times Value
	// is the estimate.
	Reference string `json:"reference,omitempty"`
}

// SetAccuracy adds an accuracy, or replaces that of the same variant.
func (f *File) SetAccuracy(a Accuracy) {
	f.Accuracies = put(f.Accuracies, a, func(x Accuracy) bool { return x.Variant == a.Variant })
}

// put adds x to a list, or replaces what is the same.
func put[T any](list []T, x T, same func(T) bool) []T {
	at := slices.IndexFunc(list, same)
	if at < 0 {
		return append(list, x)
	}
	list[at] = x
	return list
}

// AccuracyOf returns the measured accuracy of a variant. One that was compared with a reference has that of the
// reference, which known returns where it is not in the file, times its agreement.
func (f *File) AccuracyOf(variant string, known func(string) (float64, bool)) (float64, bool) {
	find := func(name string) *Accuracy {
		at := slices.IndexFunc(f.Accuracies, func(x Accuracy) bool { return x.Variant == name })
		if at < 0 {
			return nil
		}
		return &f.Accuracies[at]
	}
	a := find(variant)
	switch {
	case a == nil:
		return 0, false
	case a.How != ByAgreement:
		return a.Value, true
	}
	if r := find(a.Reference); r != nil && r.How != ByAgreement {
		return a.Value * r.Value, true
	}
	if v, ok := known(a.Reference); ok {
		return a.Value * v, true
	}
	return a.Value, true
}

func validAccuracies(list []Accuracy) error {
	seen := make(map[string]bool, len(list))
	for i := range list {
		a := &list[i]
		switch {
		case a.Variant == "" || seen[a.Variant]:
			return fmt.Errorf("accuracies[%d].variant is %q, want each variant once", i, a.Variant)
		case a.How != ByLabels && a.How != ByScore && a.How != ByAgreement:
			return fmt.Errorf("accuracies[%d].how is %q, want %s, %s or %s", i, a.How, ByLabels, ByScore, ByAgreement)
		case !(a.Value >= 0 && a.Value <= 1):
			return fmt.Errorf("accuracies[%d].value is %v, want a number in [0, 1]", i, a.Value)
		case a.Samples < 1:
			return fmt.Errorf("accuracies[%d].samples is %d, want at least 1", i, a.Samples)
		case (a.Reference == "") == (a.How == ByAgreement):
			return fmt.Errorf("accuracies[%d].reference is %q, want the variant that answers were compared with, for "+
				"%s only", i, a.Reference, ByAgreement)
		}
		seen[a.Variant] = true
	}
	return nil
}
