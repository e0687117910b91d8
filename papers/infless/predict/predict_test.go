package predict

import (
	"math"
	"testing"

	"github.com/sluice-serving/sluice/papers/infless/operators"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// TestTheirs checks the errors of the authors' own predictions over all that they measured.
func TestTheirs(t *testing.T) {
	o := &reproduce.Outcome{}
	if err := addAuthors(o); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"resnet-50": 12.5, "mobilenet": 24.4, "lstm-2365": 64.8, "lstm-2365 (adjusted)": 17.7, "catdog": 56.5,
		"textcnn-69": 115.4,
	}
	for _, r := range o.Rows {
		if math.Abs(r.Measured-want[r.System]) > 0.1 {
			t.Errorf("%s errs by %v %%, want %v", r.System, r.Measured, want[r.System])
		}
		delete(want, r.System)
	}
	if len(want) > 0 {
		t.Errorf("nothing is said of %v", want)
	}
}

// TestSay checks the errors computed from pairs: of two configurations one is predicted 20 % too high.
func TestSay(t *testing.T) {
	pair := func(predicted, parallel, measured float64) Pair {
		return Pair{Prediction: operators.Prediction{
			Threads: 1, Sequential: operators.Timing{Typical: predicted}, Parallel: operators.Timing{Typical: parallel},
		},
			Whole: operators.Timing{Typical: measured}, Written: 2 * measured}
	}
	two := pair(95, 95, 100)
	two.Threads = 2
	o := &reproduce.Outcome{}
	addOurs(o, []Network{{"net", []Pair{pair(120, 60, 100), pair(85, 50, 100), two}}})
	got := map[string]float64{}
	for _, r := range o.Rows {
		if r.System == "net" {
			got[r.Quantity+" "+r.Setting["threads"]] = r.Measured
		}
	}
	for q, want := range map[string]float64{"mean error 1": 17.5, "worst error 1": 20,
		"mean error, branches at once 1": 45, "mean error, as written 1": 100, "on the safe side 1": 50,
		"mean error 2": 5, "on the safe side 2": 100, "mean error 1 and 2": 40. / 3, "worst error 1 and 2": 20} {
		if math.Abs(got[q]-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", q, got[q], want)
		}
	}
}

// TestNoRuntime checks that the figure fails without a runtime.
func TestNoRuntime(t *testing.T) {
	if err := Prepare(reproduce.NewRunner(reproduce.Request{})); err == nil {
		t.Error("the figure was planned without a runtime")
	}
}
