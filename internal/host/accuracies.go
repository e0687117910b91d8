package host

import (
	"fmt"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/serving"
)

// Accuracies of one variant that are apart by more than accuracyDrift, and by more than driftErrors standard errors of
// the measured one, are announced.
const (
	accuracyDrift = 0.02
	driftErrors   = 3
)

// rated returns a copy in which variants that do not say how accurate they are have what a profile measured. Where both
// say it, the configuration counts, and a warning tells of a difference.
func (o *Opened) rated(f *profiler.File) *Opened {
	if len(f.Accuracies)+len(f.Confidences) == 0 {
		return o
	}
	out, tables, spec := *o, *o.tables, *o.tables.Spec
	spec.Variants = slices.Clone(spec.Variants)
	tables.Variants, tables.Warnings = slices.Clone(tables.Variants), slices.Clone(tables.Warnings)
	known := func(name string) (float64, bool) {
		at := slices.IndexFunc(o.Spec().Variants, func(v serving.Variant) bool { return v.Name == name })
		if at < 0 || o.tables.Variants[at].Unrated {
			return 0, false
		}
		return o.Spec().Variants[at].Accuracy, true
	}
	out.judged = slices.Clone(o.judged)
	for id := range spec.Variants {
		v := &spec.Variants[id]
		got, ok := f.AccuracyOf(v.Name, known)
		if !ok {
			// The reference of an agreement is as accurate as one can tell without labels.
			if !tables.Variants[id].Unrated || !isReference(f, v.Name) {
				continue
			}
			got = 1
		}
		out.judged = append(out.judged, JudgedAccuracy{serving.VariantID(id), got})
		if tables.Variants[id].Unrated {
			v.Accuracy, tables.Variants[id].Unrated = got, false
			continue
		}
		if said := v.Accuracy; Drifted(said, got, samplesOf(f, v.Name)) {
			tables.Warnings = append(tables.Warnings, fmt.Sprintf("variant %q: its accuracy is %.3g in %s and was "+
				"measured as %.3g: plans believe the former", v.Name, said, o.Name(), got))
		}
	}
	tables.Spec = &spec
	out.tables = &tables
	out.takeConfidences(f)
	return &out
}

// contradicted reports whether the accuracy of a variant that counts is not the one that a profile has measured.
func contradicted(f *profiler.File, name string, counts float64) bool {
	return slices.ContainsFunc(f.Accuracies, func(a profiler.Accuracy) bool {
		return a.Variant == name && a.How != profiler.ByAgreement && Drifted(counts, a.Value, a.Samples)
	})
}

// takeConfidences has stages know the confidences that a profile has of their variants, where the accuracies that count
// are those that were measured.
func (o *Opened) takeConfidences(f *profiler.File) {
	spec := o.tables.Spec
	spec.Stages = slices.Clone(spec.Stages)
	for s := range spec.Stages {
		stage := &spec.Stages[s]
		id := func(name string) (serving.VariantID, bool) {
			at := slices.IndexFunc(stage.Variants, func(v serving.VariantID) bool {
				x := &spec.Variants[v]
				return x.Name == name && !x.Retired && !contradicted(f, name, x.Accuracy)
			})
			if at < 0 {
				return 0, false
			}
			return stage.Variants[at], true
		}
		if stage.Stateful {
			continue
		}
		stage.Confidences = nil
		for k := range f.Confidences {
			if v, ok := id(f.Confidences[k].Variant); ok {
				stage.Confidences = append(stage.Confidences, f.Confidences[k].Of(v, id))
			}
		}
	}
}

// JudgedAccuracy is a measured accuracy.
type JudgedAccuracy struct {
	Variant  serving.VariantID
	Accuracy float64
}

// unrated is a variant of which nobody has said how accurate it is; serving.None for none.
func (o *Opened) unrated() serving.VariantID {
	return serving.VariantID(slices.IndexFunc(o.tables.Variants, func(b config.Binding) bool { return b.Unrated }))
}

func isReference(f *profiler.File, name string) bool {
	return slices.ContainsFunc(f.Accuracies, func(a profiler.Accuracy) bool { return a.Reference == name })
}

func samplesOf(f *profiler.File, name string) int {
	for _, a := range f.Accuracies {
		if a.Variant == name {
			return a.Samples
		}
	}
	return 0
}

// Drifted reports whether a measured accuracy contradicts the one that was said.
func Drifted(said, measured float64, samples int) bool {
	apart := math.Abs(said - measured)
	return apart > accuracyDrift && apart > driftErrors*math.Sqrt(measured*(1-measured)/float64(max(samples, 1)))
}

// Lenient returns a copy whose variants may lack an accuracy: only their speed counts.
func (o *Opened) Lenient() *Opened {
	out := *o
	out.lenient = true
	return &out
}

// Judged has the accuracies that the profile has, by variant.
func (o *Opened) Judged() []JudgedAccuracy { return o.judged }
