package priced

import (
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
)

// The batch that begins is said first, whatever its score, then the others, the best first. Eight are said, and the
// rest is counted: of ten choices the worst two.
func TestChoicesAreSaidBestFirst(t *testing.T) {
	var w weighing
	for _, score := range []float64{3, 5, 1, 8, 2, 9, 4, 7, 6, 0} {
		w.add(route.Choice{Score: score})
		if len(w.Choices) == 1 && w.Choices[0].Score != 3 {
			t.Fatal("the first is not said first")
		}
	}
	var scores []float64
	for k := range w.Choices {
		scores = append(scores, w.Choices[k].Score)
	}
	if want := []float64{3, 9, 8, 7, 6, 5, 4, 2}; !slices.Equal(scores, want) || w.More != 2 {
		t.Errorf("scores %v and %d more, want %v and 2", scores, w.More, want)
	}
}

// Two variants on each of two machines of different residency: both batches are said, with what they gain. On idle
// machines time costs next to nothing: an answer gains 1.25 on the accurate variant, and 0.2 less on the other.
func TestWhatIsSaidIsWhatBegins(t *testing.T) {
	l := newLab(ladder(), []serving.VariantID{0}, []serving.VariantID{1}).wait(0, 100)
	var said []route.Choice
	l.Watch(func(w *route.Weighing) {
		if w.Late || w.Overlaps {
			t.Errorf("late %v, beside %v", w.Late, w.Overlaps)
		}
		said = slices.Clone(w.Choices)
	})
	l.want(t, "idle machines", "0: 1")
	if len(said) != 2 || said[0].Variant != 0 || said[1].Variant != 1 {
		t.Fatalf("said %+v", said)
	}
	if d := said[0].Gain - said[1].Gain; said[0].Score < said[1].Score && d < 0.19 || d > 0.21 {
		t.Errorf("gains %v and %v, want 0.2 apart", said[0].Gain, said[1].Gain)
	}
	if said[0].Queries != 1 || said[0].Seconds != 0.02 {
		t.Errorf("said %d queries in %v s, want 1 in 0.02", said[0].Queries, said[0].Seconds)
	}
}
