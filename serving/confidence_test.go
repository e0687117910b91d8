package serving

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

// sure is an app of two variants, of which the first knows how sure it is.
func sure() *Spec {
	s := &Spec{
		DeviceTypes: []DeviceType{{Name: "d"}}, Workers: []Worker{{Name: "w"}},
		Apps: []App{{
			Name: "a", SLO: SLO{Latency: 1, Percentile: 99}, Weight: 1, QueueLimit: 1, Stages: []StageID{0},
		}},
		Stages: []Stage{{Name: "a", Variants: []VariantID{0, 1}}},
		Variants: []Variant{
			{Name: "small", Accuracy: 0.8, MaxBatch: 1}, {Name: "large", Accuracy: 0.9, MaxBatch: 1},
		},
	}
	s.Stages[0].Confidences = []Confidence{{Variant: 0, Bins: []ConfidenceBin{
		{From: 0.1, Share: 0.4, Accuracy: 0.5, Others: []VariantAccuracy{{1, 0.8}}},
		{From: 0.6, Share: 0.6, Accuracy: 1, Others: []VariantAccuracy{{1, 0.97}}},
	}}}
	return s
}

// A confidence lies in the last bin that begins below it; what is less than all, or no number, in the first. A hint
// names the bin, over all variants of the stage.
func TestBinsAndHints(t *testing.T) {
	stage := &sure().Stages[0]
	stage.Confidences = append(stage.Confidences, Confidence{Variant: 1, Bins: []ConfidenceBin{{Share: 1}}})
	for _, c := range []struct {
		variant    VariantID
		confidence float32
		want       Hint
	}{
		{0, 0.05, 1}, {0, 0.1, 1}, {0, 0.59, 1}, {0, 0.6, 2}, {0, 7, 2}, {0, float32(math.NaN()), 1}, {1, 0.5, 3},
		{2, 0.5, 0},
	} {
		if got := stage.Hint(c.variant, c.confidence); got != c.want {
			t.Errorf("variant %d, confidence %v: hint %d, want %d", c.variant, c.confidence, got, c.want)
		}
	}
	if b := stage.Hinted(2); b != &stage.Confidences[0].Bins[1] || stage.Hinted(3) != &stage.Confidences[1].Bins[0] {
		t.Errorf("hint 2 is of %+v", b)
	}
	if stage.Hinted(0) != nil || stage.Hinted(4) != nil || stage.Hinted(-1) != nil {
		t.Error("a hint of nothing has a bin")
	}
	if b := stage.Hinted(1); !b.Improves(1) || !b.Improvable() || stage.Hinted(2).Improvable() || b.Improves(0) {
		t.Error("what improves an answer is another variant that is more often right")
	}
}

// Where an app joins a larger world its variants have other numbers, in its confidences, too; what is retired is left
// out for planners.
func TestConfidencesFollowTheirVariants(t *testing.T) {
	first := sure()
	grown, at := first.WithAppsOf(sure(), nil)
	if err := grown.Validate(); err != nil {
		t.Fatal(err)
	}
	c := grown.Stages[at.Stages[0]].Confidences[0]
	if c.Variant != at.Variants[0] || c.Bins[0].Others[0].Variant != at.Variants[1] {
		t.Errorf("confidences %+v, the variants are %v", c, at.Variants)
	}
	if !reflect.DeepEqual(first, sure()) {
		t.Error("the smaller world has changed")
	}
	grown.Variants[at.Variants[1]].Retired = true
	open := grown.Open()
	own := open.Spec.Stages[open.StageOf[at.Stages[0]]].Confidences
	if len(own) != 1 || own[0].Variant != open.VariantOf[at.Variants[0]] || len(own[0].Bins[0].Others) != 0 {
		t.Errorf("of what is open there are the confidences %+v", own)
	}
}

// What cannot be is refused, with its place.
func TestConfidencesAreChecked(t *testing.T) {
	for want, spoil := range map[string]func(s *Stage){
		"want ascending bounds":        func(s *Stage) { s.Confidences[0].Bins[1].From = 0.1 },
		"the shares of the bins":       func(s *Stage) { s.Confidences[0].Bins[1].Share = 0.5 },
		"want a variant of the":        func(s *Stage) { s.Confidences[0].Variant = 7 },
		"want other variants of the":   func(s *Stage) { s.Confidences[0].Bins[0].Others[0].Variant = 0 },
		"are for stages without state": func(s *Stage) { s.Stateful = true },
	} {
		s := sure()
		spoil(&s.Stages[0])
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
