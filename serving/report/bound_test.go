package report

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// two apps, of weights 1 and 3, each of four queries: of the first all are in time, at half and at all of its best
// accuracy; of the second one is in time, one late, one dropped and one refused.
func weighted(b *Bound) *Report {
	r := NewRecorder([]AppInfo{{Name: "a", BestAccuracy: 0.8}, {Name: "b", BestAccuracy: 0.5, Weight: 3}}, Options{})
	add := func(app serving.AppID, outcome serving.Outcome, accuracy float64, late bool) {
		o := Outcome{App: app, Outcome: outcome, Accuracy: accuracy, Deadline: 1e9, Done: 5e8, Label: LabelUnknown}
		if late {
			o.Done = 2e9
		}
		r.Add(&o)
	}
	for _, accuracy := range []float64{0.4, 0.4, 0.8, 0.8} {
		add(0, serving.Served, accuracy, false)
	}
	add(1, serving.Served, 0.5, false)
	add(1, serving.Served, 0.5, true)
	add(1, serving.Dropped, 0, false)
	add(1, serving.Refused, 0, false)
	return r.Report(Meta{Duration: time.Hour, Bound: b, Usage: &Usage{Dollars: 2}})
}

// Utility counts queries in time by accuracy and by weight.
func TestUtility(t *testing.T) {
	r := weighted(nil)
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"of all", *r.Overall.Utility, (3 + 3.0) / (4 + 12)}, {"of the first", *r.Apps[0].Utility, 0.75},
		{"of the second", *r.Apps[1].Utility, 0.25}, {"of the first second", *r.Series[0].Utility, 6.0 / 16},
	} {
		if math.Abs(c.got-c.want) > 1e-12 {
			t.Errorf("the utility %s is %v, want %v", c.name, c.got, c.want)
		}
	}
	if r.Overall.UtilityBound != nil || r.AboveBound() != "" {
		t.Error("a run without a bound has one")
	}
}

// A run beside its bound; one above it says so, in utility and in money, and not within the tolerance.
func TestAboveBound(t *testing.T) {
	dollars := func(x float64) *float64 { return &x }
	for _, c := range []struct {
		name string
		b    Bound
		says string
	}{
		{"below", Bound{Utility: 0.5, CostPerHour: dollars(1)}, ""},
		{"at it", Bound{Utility: 0.375, CostPerHour: dollars(2)}, ""},
		{"above", Bound{Utility: 0.36}, "utility 0.3750"},
		{"above within the tolerance", Bound{Utility: 0.36, Tolerance: 0.05}, ""},
		{"for too little", Bound{Utility: 1, CostPerHour: dollars(2.5)}, "2.0000 $/h"},
		{"skipped", Bound{Skipped: "too large"}, ""},
	} {
		r := weighted(&c.b)
		if got := r.AboveBound(); !strings.HasPrefix(got, c.says) || c.says == "" && got != "" {
			t.Errorf("%s: %q, want %q", c.name, got, c.says)
		}
		var text bytes.Buffer
		if err := r.Table(&text); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]string{false: "  of the bound", true: "no bound: too large"}[c.b.Skipped != ""]; !strings.
			Contains(text.String(), want) {
			t.Errorf("%s: the table lacks %q:\n%s", c.name, want, text.String())
		}
	}
}
