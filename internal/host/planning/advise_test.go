package planning_test

import (
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/planning"
	"github.com/sluice-serving/sluice/internal/host/questions"
)

// A demand that the example's fleet cannot carry is diagnosed, and each remedy that can be asked as a question
// "what if" mends it: with the change, all is carried. A demand that is carried has facts and no complaint.
func TestAdviceMends(t *testing.T) {
	o, err := host.Open("../../../examples/fleet.yaml", host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.Profile()
	if err != nil {
		t.Fatal(err)
	}
	ask := func(factor float64, c questions.Change) *questions.Advice {
		t.Helper()
		q := &questions.WhatIf{File: p.Name(), Measurements: p.Measurements(), Change: c}
		for range p.Spec().Apps {
			q.Demand = append(q.Demand, factor)
		}
		x, err := q.Answer(t.Context(), host.Options{}, planning.Advise)
		if err != nil {
			t.Fatal(err)
		}
		return x.Advice
	}
	if a := ask(1, questions.Change{}); !a.Carried || len(a.Facts) == 0 || len(a.Lists) != 0 {
		t.Errorf("a small demand: %+v", a)
	}
	a := ask(4000, questions.Change{})
	if a.Carried || len(a.Summary) == 0 || !strings.Contains(a.Summary[0], "cannot be carried") {
		t.Fatalf("a large demand: %+v", a)
	}
	tried := 0
	for _, l := range a.Lists {
		for _, x := range l.Items {
			if x.Change == nil {
				continue
			}
			tried++
			if then := ask(4000, *x.Change); !then.Carried {
				t.Errorf("%q does not mend it: %v", x.Text, then.Summary)
			}
		}
	}
	if tried == 0 {
		t.Errorf("no mend can be tried: %+v", a.Lists)
	}
}

// Without an adviser, and for rates that are none, the question is refused.
func TestAdviceRefuses(t *testing.T) {
	o, err := host.Open("../../../examples/fleet.yaml", host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.Profile()
	if err != nil {
		t.Fatal(err)
	}
	for want, q := range map[string]*questions.WhatIf{
		"one for each":     {Demand: []float64{1}},
		"demand[1]: is -1": {Demand: []float64{1, -1, 1, 1, 1, 1}},
		"no such worker":   {Demand: []float64{1, 1}, Change: questions.Change{Machines: map[string]int{"x": 1}}},
		"no such app": {Demand: []float64{1, 1},
			Change: questions.Change{Apps: map[string]questions.AppChange{"x": {}}}},
		"ask sluice plan": nil,
	} {
		var advise questions.Adviser = planning.Advise
		if q == nil {
			q, advise, want = &questions.WhatIf{Demand: []float64{1, 1}}, nil, "'sluice plan'"
		}
		q.File, q.Measurements = p.Name(), p.Measurements()
		if _, err := q.Answer(t.Context(), host.Options{}, advise); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
