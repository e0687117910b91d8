package report

import (
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// An app's target is kept by the mean accuracy of its answers, or it says what is missing. Apps without one have no
// line.
func TestTargetsAreKeptOrMissed(t *testing.T) {
	r := NewRecorder([]AppInfo{
		{Name: "kept", BestAccuracy: 0.9, Target: 0.75}, {Name: "missed", BestAccuracy: 0.9, Target: 0.8},
		{Name: "free", BestAccuracy: 0.9}, {Name: "idle", BestAccuracy: 0.9, Target: 0.8},
	}, Options{})
	for a := range serving.AppID(3) {
		for k, accuracy := range []float64{0.6, 0.9} {
			at := serving.Time(k) * serving.Time(time.Second)
			r.Add(&Outcome{App: a, Outcome: serving.Served, Arrived: at, Done: at, Deadline: at, Accuracy: accuracy})
		}
	}
	rep := r.Report(Meta{Duration: time.Second})
	if a := &rep.Apps[0]; a.Target == nil || *a.Target != 0.75 || a.Missed == nil || *a.Missed != 0 {
		t.Errorf("%+v", a)
	}
	if a := &rep.Apps[1]; a.Missed == nil {
		t.Errorf("%+v", a)
	} else {
		near(t, "missed", a.Missed, 0.05)
	}
	if a := &rep.Apps[2]; a.Target != nil || a.Missed != nil {
		t.Errorf("%+v", a)
	}
	if a := &rep.Apps[3]; a.Target == nil || a.Missed != nil {
		t.Errorf("%+v", a)
	}
	var out strings.Builder
	if err := rep.Table(&out); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"accuracy target of 75.00 % for app kept, kept\n",
		"accuracy target of 80.00 % for app missed, missed: 75.00 %\n",
		"accuracy target of 80.00 % for app idle, nothing was served\n",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%s\nhas no line %q", out.String(), line)
		}
	}
	if strings.Contains(out.String(), "for app free") {
		t.Error("an app without a target has a line")
	}
}

// Money is divided by the time over which it was counted, which is longer than that of the arrivals where queries wait.
func TestCostIsOfTheTimeOfTheRun(t *testing.T) {
	r := NewRecorder([]AppInfo{{Name: "a"}}, Options{})
	r.Add(&Outcome{Outcome: serving.Served})
	rep := r.Report(Meta{Duration: time.Minute, Usage: &Usage{Dollars: 1, Span: 2 * time.Minute}})
	near(t, "cost", rep.Overall.CostPerHour, 30)
	near(t, "cost per million", rep.Overall.CostPerMillion, 1e6)
}
