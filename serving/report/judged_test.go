package report

import (
	"math"
	"testing"

	"github.com/sluice-serving/sluice/serving"
)

// Measured accuracy is by item and beside it stands the share of queries that are wholly right. A query of one item
// counts the same in both, and one that nothing is known of in neither.
func TestMeasuredByItemAndByQuery(t *testing.T) {
	r := NewRecorder([]AppInfo{{Name: "a"}}, Options{})
	for _, o := range []Outcome{
		{Label: LabelWrong, RightItems: 7, JudgedItems: 10}, {Label: LabelRight, RightItems: 4, JudgedItems: 4},
		{Label: LabelRight}, {Label: LabelWrong}, {Label: LabelUnknown},
	} {
		o.Outcome, o.Items = serving.Served, 1
		r.Add(&o)
	}
	s := r.Report(Meta{}).Overall
	if *s.MeasuredAccuracy != 12.0/16 || *s.MeasuredQueryAccuracy != 2.0/4 || s.Labelled != 4 {
		t.Errorf("measured %v by item, %v by query of %d", *s.MeasuredAccuracy, *s.MeasuredQueryAccuracy, s.Labelled)
	}
	r = NewRecorder([]AppInfo{{Name: "a"}}, Options{})
	r.Add(&Outcome{Outcome: serving.Served, Items: 1, Label: LabelRight})
	if s := r.Report(Meta{}).Overall; *s.MeasuredAccuracy != 1 || s.MeasuredQueryAccuracy != nil {
		t.Errorf("queries of one item: %+v", s)
	}
}

// A query that passes over a stage may be more accurate than the product of the best variants. It counts as 100 % then,
// and makes no other query's drop smaller.
func TestNormalisedAccuracyIsAtMostOne(t *testing.T) {
	r := NewRecorder([]AppInfo{{Name: "a", BestAccuracy: 0.8}}, Options{})
	for _, accuracy := range []float64{0.9, 0.8, 0.6} {
		r.Add(&Outcome{Outcome: serving.Served, Items: 1, Accuracy: accuracy, Label: LabelUnknown})
	}
	s := r.Report(Meta{}).Overall
	if want := (1 + 1 + 0.75) / 3; math.Abs(*s.NormalisedAccuracy-want) > 1e-12 ||
		math.Abs(*s.MaxAccuracyDrop-0.2/3) > 1e-12 {
		t.Errorf("normalised %v, want %v; drop %v, want %v", *s.NormalisedAccuracy, want, *s.MaxAccuracyDrop, 0.2/3)
	}
}
