package status

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/board"
)

func TestNumbersAreShort(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 1234.5: "1230", 12.345: "12.3", 0.0123456: "0.0123",
		7: "7", 0.5: "0.5"} {
		if got := trimmed(x); got != want {
			t.Errorf("%v is written %s, want %s", x, got, want)
		}
	}
	if got := percent(0.0042); got != "0.4%" {
		t.Errorf("a share is written %s", got)
	}
}

// TestSteadyLoadIsWrittenOnce holds that figures which wobble make equal statuses, and others do not.
func TestSteadyLoadIsWrittenOnce(t *testing.T) {
	var s appStatus
	now := time.Now()
	at := func(rate, late float64) string {
		acc := 0.9
		b, err := json.Marshal(s.fields(App{Rate: rate, Violations: &late, Accuracy: &acc, Dollars: 2, Machines: 2,
			Instances: 2, Ready: true, Percentile: 99, Latency: 50 * time.Millisecond, Planned: true, Demand: rate},
			Said{}, now))
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
		return string(b)
	}
	first := at(1000, 0.002)
	for _, rate := range []float64{1003, 980, 1050, 1099, 920} {
		if got := at(rate, 0.0021); got != first {
			t.Fatalf("at %v queries/s the status changes to %s from %s", rate, got, first)
		}
	}
	if at(1200, 0.002) == first {
		t.Error("a fifth more is not shown")
	}
	if at(1200, 0.1) == first {
		t.Error("a tenth of the queries late is not shown")
	}
	if at(0, 0) == first {
		t.Error("no queries are not shown")
	}
}

// TestMovingFiguresAreWrittenEverLessOften holds that a condition is not kept waiting by figures.
func TestMovingFiguresAreWrittenEverLessOften(t *testing.T) {
	const every = 5 * time.Second
	var e entry
	start := time.Now()
	writes := func(judged string, from, to int) (n int) {
		for s := from; s < to; s++ {
			if e.due(judged, start.Add(time.Duration(s)*time.Second), every) {
				e.judged = judged
				n++
			}
		}
		return n
	}
	if n := writes("Ready=True", 0, 120); n > 7 {
		t.Errorf("figures that change every second are written %d times in two minutes", n)
	}
	if n := writes("Ready=False", 120, 125); n != 1 {
		t.Errorf("a condition is written %d times in the next 5 s, want once", n)
	}
	if n := writes("Ready=False", 125, 135); n != 1 {
		t.Errorf("figures are written %d times in the 10 s after that, want once", n)
	}
	if n := writes("Ready=False", 200, 201); n != 1 {
		t.Error("a figure that has rested is not written at once")
	}
}

func TestConditions(t *testing.T) {
	late, none := 0.03, (*float64)(nil)
	tests := []struct {
		name string
		app  App
		said Said
		want map[string]string // condition: status/reason
	}{
		{"all is well", App{Rate: 5, Violations: new(float64), Ready: true, Percentile: 99, Planned: true}, Said{},
			map[string]string{"Ready": "True/Answering", "ObjectiveMet": "True/InTime", "Planned": "True/Carried",
				"ModelsReady": "True/Loaded"}},
		{"a wrong digest", App{Percentile: 99, Broken: []Broken{{"small", "its sha256 is another"}}}, Said{},
			map[string]string{"ModelsReady": "False/LoadFailed"}},
		{"too many late", App{Rate: 5, Violations: &late, Ready: true, Percentile: 99, Planned: true}, Said{},
			map[string]string{"ObjectiveMet": "False/TooManyLate"}},
		{"silent and asleep", App{Violations: none, Percentile: 99}, Said{},
			map[string]string{"Ready": "False/Asleep", "ObjectiveMet": "Unknown/NoQueries"}},
		{"short of machines", App{Rate: 50, Demand: 50, Shed: 20, Violations: &late, Percentile: 95, Planned: true,
			Ready: true}, Said{Lacks: "two machines", Remedies: []string{"add 2"}},
			map[string]string{"Planned": "False/Lacking", "ObjectiveMet": "True/InTime"}},
	}
	for _, x := range tests {
		t.Run(x.name, func(t *testing.T) {
			got := map[string]string{}
			for _, c := range (&appStatus{}).fields(x.app, x.said, time.Now())["conditions"].([]any) {
				m := c.(map[string]any)
				got[m["type"].(string)] = m["status"].(string) + "/" + m["reason"].(string)
			}
			for kind, want := range x.want {
				if got[kind] != want {
					t.Errorf("%s is %s, want %s", kind, got[kind], want)
				}
			}
		})
	}
}

// The condition says which variant cannot be loaded, and why.
func TestWhyModelsAreNotReady(t *testing.T) {
	got := modelsReady(App{Broken: []Broken{{"a.small", "its sha256 is another"}, {"a.large", ""}}}).message
	for _, want := range []string{"a.small cannot be loaded: its sha256 is another",
		"a.large cannot be loaded: see the log"} {
		if !strings.Contains(got, want) {
			t.Errorf("the message is %q, want %q in it", got, want)
		}
	}
}

func TestChangesInWords(t *testing.T) {
	p := &board.PlanView{PlanLine: board.PlanLine{Number: 3, Why: "rates have changed"}}
	p.Changes = []board.PlanChange{{PlanRow: board.PlanRow{App: "a", Kind: "g4", Variants: []string{"small"},
		Instances: 3},
		Before: 1}}
	if got := changesOf(p)["a"]; got != "Plan 3 (rates have changed): instances of small on g4: 3 instead of 1" {
		t.Errorf("the event says %q", got)
	}
}

func TestMachinesAreShared(t *testing.T) {
	m := &board.Machines{
		Kinds:   []board.Kind{{Name: "g4", Price: 3}},
		Stages:  []board.StageName{{App: "a", Stage: "s"}, {App: "b", Stage: "s"}},
		Workers: []board.WorkerInfo{{Name: "w0"}, {Name: "w1"}},
		States: []board.WorkerNow{
			{Worker: 0, Instances: []board.InstanceNow{{Stage: 0, State: "ready"}, {Stage: 1, State: "loading"}}},
			{Worker: 1, Instances: []board.InstanceNow{{Stage: 0, State: "ready"}}},
		},
	}
	types := map[string]int{}
	h := holdings(m, types)
	if types["g4"] != 2 || h["a"].dollars != 4.5 || h["b"].dollars != 1.5 ||
		h["a"].least(1) != 2 || h["b"].least(1) != 0 {
		t.Errorf("machines %v, a %+v, b %+v", types, h["a"], h["b"])
	}
}
