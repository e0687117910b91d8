package fluid

import (
	"math"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// unsureFifth has a variant be wrong in a fifth of its answers, those alone of which it is unsure, where others are
// right.
func (w *world) unsureFifth(first serving.VariantID, others ...serving.VariantID) {
	var better []serving.VariantAccuracy
	for _, v := range others {
		better = append(better, serving.VariantAccuracy{Variant: v, Accuracy: 1})
	}
	s := &w.Stages[w.Variants[first].Stage]
	s.Confidences = append(s.Confidences, serving.Confidence{Variant: first, Bins: []serving.ConfidenceBin{
		{Share: 0.2, Others: better}, {From: 0.5, Share: 0.8, Accuracy: 1, Others: better},
	}})
}

// One machine, queries of 10 ms on the small variant (accuracy 0.8) and of 40 ms on the large one (1): as in
// the example of package bound. A query of whose answer the small one is unsure takes 50 ms, and a fifth is: 18 ms in
// the mean, which 500/9 queries/s may take. Without second answers x are large with 10 (500/9 - x) + 40 x = 1000: 4/15.
func TestSecondAnswersInTheProgram(t *testing.T) {
	w := &world{}
	w.machines(1, 1, 0, 0)
	w.app(time.Second, 500./9)
	w.variant(0, 10*ms, 0.8, 0)
	w.variant(0, 40*ms, 1, 0)
	if p := w.plan(t, Planner{Options: Options{SecondAnswers: true, Certain: true}}, nil); p.Forecast.Second != nil {
		t.Error("second answers where no confidence is known")
	}
	w.unsureFifth(0, 1)
	p := w.plan(t, Planner{Options: Options{SecondAnswers: true, Certain: true}}, nil)
	y := p.Forecast.Second
	if math.Abs(p.Forecast.Accuracy-1) > 1e-4 || math.Abs(y.Shares[0]-0.2) > 1e-4 ||
		math.Abs(y.Gains[0]-(0.2-0.2*4/15)) > 1e-4 {
		t.Errorf("accuracy %v, second answers %+v, want 1, for 0.2, that add 0.147", p.Forecast.Accuracy, y)
	}
	p = w.plan(t, Planner{Options: Options{Certain: true}}, nil)
	if math.Abs(p.Forecast.Accuracy-(0.8+0.2*4/15)) > 1e-4 || p.Forecast.Second != nil {
		t.Errorf("accuracy %v without second answers, want 0.853", p.Forecast.Accuracy)
	}
}

// Memory holds two of three variants. Alone the second, of 18 ms, is the best to have for 50 queries/s. Where the first
// knows how sure it is, its fifth of unsure queries may go to the third, of 40 ms.
func TestSecondAnswersChooseWhatIsHeld(t *testing.T) {
	w := &world{}
	w.machines(1, 1, 0, 200*mebi)
	w.app(time.Second, 50)
	w.variant(0, 10*ms, 0.8, 100*mebi)
	w.variant(0, 18*ms, 0.95, 100*mebi)
	w.variant(0, 40*ms, 1, 100*mebi)
	holds := func() (out [3]bool) {
		p := w.plan(t, Planner{Options: Options{SecondAnswers: true, Certain: true}}, nil)
		for _, v := range p.Instances[0].Variants {
			out[v.Variant] = true
		}
		return out
	}
	if got := holds(); !got[1] {
		t.Errorf("holds %v, want the second variant", got)
	}
	w.unsureFifth(0, 2)
	if got := holds(); got != [3]bool{true, false, true} {
		t.Errorf("holds %v, want the first and the third", got)
	}
}

// For a mean accuracy of 0.95 the large variant answers a part x of the queries: 0.8 + 0.2 x = 0.95,
// x = 0.75, so 100 (10 x 0.25 + 40 x 0.75) = 3.25 machines. With second answers 0.15 of the queries need one:
// 100 (10 + 40 x 0.15) = 1.6.
func TestSecondAnswersSaveMachines(t *testing.T) {
	w := &world{}
	w.machines(10, 1, 1, 0)
	w.app(time.Second, 100).AccuracyTarget = 0.95
	w.variant(0, 10*ms, 0.8, 0)
	w.variant(0, 40*ms, 1, 0)
	w.unsureFifth(0, 1)
	o := Options{Certain: true, Trials: -1}
	without := w.plan(t, Planner{Options: o}, nil)
	o.SecondAnswers = true
	with := w.plan(t, Planner{Options: o}, nil)
	if math.Abs(without.Bound-3.25) > 1e-3 || math.Abs(with.Bound-1.6) > 1e-3 ||
		math.Abs(with.Forecast.Second.Saved-1.65) > 1e-3 {
		t.Errorf("least rent %v and %v, saved %v: want 3.25, 1.6 and 1.65 $/h", without.Bound, with.Bound,
			with.Forecast.Second.Saved)
	}
	if a, b := w.used(without)[0], w.used(with)[0]; b >= a {
		t.Errorf("%d machines with second answers, %d without", b, a)
	}
}

// The small variant's answers, and the large one's to what it is unsure of, are right together, although the large one
// alone is right in 0.9. At 10 queries/s the machine has time to spare: a fifth of the queries has a second answer, and
// accuracy is 1. No more queries are answered than come, however much second answers to them would add.
func TestSecondAnswersToWhatComesAlone(t *testing.T) {
	w := &world{}
	w.machines(1, 1, 0, 0)
	w.app(time.Second, 10)
	w.variant(0, 10*ms, 0.8, 0)
	w.variant(0, 40*ms, 0.9, 0)
	w.unsureFifth(0, 1)
	p := w.plan(t, Planner{Options: Options{SecondAnswers: true, Certain: true}}, nil)
	y := p.Forecast.Second
	if math.Abs(p.Forecast.Accuracy-1) > 1e-4 || math.Abs(y.Shares[0]-0.2) > 1e-4 || math.Abs(y.Gains[0]-0.1) > 1e-4 {
		t.Errorf("accuracy %v, second answers %+v, want 1, for 0.2, that add 0.1", p.Forecast.Accuracy, y)
	}
}

// Queries have 2 or 10 items, which the large variant answers in 22 and 102 ms, the second too slowly. The small one
// answers them in 4 and 12 ms, and then a fifth of the items is answered one by one, in 12 ms each: the machine holds
// the large variant for the small queries and for second answers. All of that fits in: accuracy is 1.
func TestSecondAnswersOfLargeQueries(t *testing.T) {
	w := &world{}
	w.machines(1, 1, 0, 0)
	w.app(100*ms, 4).Mix = serving.Mix{Sizes: []int32{2, 10}, Shares: []float64{0.5, 0.5}}
	w.variant(2*ms, 1*ms, 0.8, 0)
	w.variant(2*ms, 10*ms, 1, 0)
	w.unsureFifth(0, 1)
	p := w.plan(t, Planner{Options: Options{SecondAnswers: true, Certain: true}}, nil)
	y := p.Forecast.Second
	if math.Abs(p.Forecast.Accuracy-1) > 1e-4 || y == nil || y.Shares[0] > 0.2+1e-4 || y.Gains[0] > 0.2+1e-4 {
		t.Errorf("accuracy %v, second answers %+v, want 1, for at most 0.2, that add at most 0.2",
			p.Forecast.Accuracy, y)
	}
	w.Stages[0].Confidences = nil
	w.Apps[0].Mix = serving.Mix{Sizes: []int32{8, 9, 10, 11, 12, 13}, Shares: []float64{.15, .17, .17, .17, .17, .17}}
	p = w.plan(t, Planner{Options: Options{Certain: true}}, nil)
	if n := len(p.Instances[0].Variants); n != 2 {
		t.Errorf("%d variants are held, want both: the large one answers queries of 8 and 9 items in time", n)
	}
}
