package reproduce

import (
	"context"
	"math"
	"testing"

	"github.com/sluice-serving/sluice/internal/measure/plot"
)

type testRunner struct{ *Runner }

// A figure states its rows and its chart before its task runs; they come out in that order with the task's numbers.
// What is not a number has no row, a chart without points is left out, and a figure on request runs only when
// it is named.
func TestSheet(t *testing.T) {
	study := Study[testRunner]{Name: "p", Notes: []string{"last"}, Solver: true,
		New: func(q Request) (testRunner, error) { return testRunner{NewRunner(q)}, nil },
		Figures: []Declaration[testRunner]{{Name: "1", Declare: func(r testRunner, f *Sheet) error {
			runs := Add(r.Runner, "seeds", 1, r.Seeds, func(_ context.Context, seed uint64) (float64, error) {
				return float64(seed), nil
			})
			at, n := f.At("load", 3), All(runs)
			at.Row("a", "rate", "/s", n).Published(7, "§1")
			at.Row("a", "of nothing", "", n.Over(Const(0, 0)))
			at.Row("b", "twice", "", n.Times(2)).Published(In(map[string]float64{}, "b"), "§2").OneSeed()
			f.Part("1b").At().Row("c", "mean", "", MeanOf(n, n.Map(func(v float64) float64 { return v + 1 })))
			none := n.Where(Const())
			at.Row("d", "where there is nothing", "", none)
			f.Chart("none", "no points", 1).Panel("empty", "x", 0, Auto).Point("line", 1, none)
			bars := f.Chart("1", "title", 1).Bars("bars")
			bars.Bar("x", "left", n)
			bars.Bar("x", "right", n.First())
			f.Note("first")
			return nil
		}}, {Name: "2", OnRequest: true, Declare: func(testRunner, *Sheet) error {
			t.Error("was not asked for")
			return nil
		}}},
	}
	run, err := study.New(Request{Seeds: 2})
	if err != nil {
		t.Fatal(err)
	}
	o, err := study.Run(t.Context(), run)
	if err != nil || len(o.Rows) != 3 || len(o.Charts) != 1 {
		t.Fatalf("%v, %+v", err, o)
	}
	a, b, c := o.Rows[0], o.Rows[1], o.Rows[2]
	if a.Measured != 1.5 || *a.Published != 7 || a.Setting["load"] != "3" || a.Seeds != 2 || a.Paper != "p" {
		t.Errorf("%+v", a)
	}
	if b.Measured != 3 || b.Published != nil || b.Seeds != 1 || c.Figure != "1b" || c.Measured != 2 {
		t.Errorf("%+v, %+v", b, c)
	}
	p := o.Charts[0].Drawing.(*plot.Chart).Panels[0]
	if len(p.Groups) != 2 || p.Lines[0].Y[0] != 1.5 || p.Lines[0].Y[1] != 1 || !math.IsNaN(p.High) {
		t.Errorf("%+v", p)
	}
	if len(o.Notes) != 2 || o.Notes[1] != "last" {
		t.Errorf("%v", o.Notes)
	}
	paper := study.Paper()
	if _, err := paper.Run(t.Context(), Request{}); err == nil {
		t.Error("runs without a solver")
	}
}

// A value is made once for a key.
func TestMemo(t *testing.T) {
	var m Memo[string, int]
	made := 0
	for range 2 {
		v, err := m.Get("a", func() (int, error) { made++; return 5, nil })
		if v != 5 || err != nil || made != 1 {
			t.Errorf("%d, %v, made %d times", v, err, made)
		}
	}
}
