package questions

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/hosttest"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// even returns n arrivals at app 0 within a span.
func even(n int, span time.Duration) (out []workload.Arrival) {
	for k := range n {
		out = append(out, workload.Arrival{
			At: serving.Time(int64(span) * int64(k) / int64(n)), Items: 1, Variant: serving.None, Sample: -1,
		})
	}
	return out
}

// question is a WhatIf about the fake configuration.
func question(t *testing.T, n int, c Change) *WhatIf {
	t.Helper()
	p := hosttest.Profiled(t, hosttest.Apps)
	return &WhatIf{File: p.Name(), Measurements: p.Measurements(), Arrivals: even(n, 10*time.Second),
		Span: 10 * time.Second, Change: c}
}

func at(x float64) *float64 { return &x }

// A question has the answer that the changed configuration has when it is simulated.
func TestWhatIf(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  Change
		yaml    string
		compare func(before, after float64) bool
		of      func(*WhatIfAnswer) (before, after float64)
	}{
		{"nothing", Change{}, "nothing was changed", func(b, a float64) bool { return a == b },
			func(x *WhatIfAnswer) (float64, float64) {
				return x.Before.Overall.Latency.P99, x.After.Overall.Latency.P99
			}},
		{"twice the load", Change{Apps: map[string]AppChange{"app": {Load: at(2)}}}, "demand: 400",
			func(b, a float64) bool { return a == 2*b },
			func(x *WhatIfAnswer) (float64, float64) {
				return float64(x.Before.Overall.Offered), float64(x.After.Overall.Offered)
			}},
		{"a tenth of the load", Change{Apps: map[string]AppChange{"app": {Load: at(0.1)}}}, "demand: 2",
			func(b, a float64) bool { return math.Abs(a-b/10) < b/30 },
			func(x *WhatIfAnswer) (float64, float64) {
				return float64(x.Before.Overall.Offered), float64(x.After.Overall.Offered)
			}},
		{"one machine more", Change{Machines: map[string]int{"w": 3}}, "count: 3",
			func(b, a float64) bool { return math.Abs(a-1.5*b) < 1e-9 },
			func(x *WhatIfAnswer) (float64, float64) {
				return *x.Before.Overall.CostPerHour, *x.After.Overall.CostPerHour
			}},
		{"an objective that is too short for the load",
			Change{Apps: map[string]AppChange{"app": {SLOMS: at(6), Load: at(4)}}}, "latency: 6ms",
			func(b, a float64) bool { return b == 0 && a > 0.3 },
			func(x *WhatIfAnswer) (float64, float64) {
				return x.Before.Overall.ViolationRatio, x.After.Overall.ViolationRatio
			}},
		{"another system", Change{System: "triton-like"}, "name: triton-like",
			func(b, a float64) bool { return a > b },
			func(x *WhatIfAnswer) (float64, float64) {
				return x.Before.Overall.Latency.P50, x.After.Overall.Latency.P50
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, err := question(t, 2000, c.change).Answer(t.Context(), host.Options{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if before, after := c.of(x); !c.compare(before, after) {
				t.Errorf("%v before, %v after", before, after)
			}
			if !strings.Contains(x.Configuration, c.yaml) {
				t.Errorf("the configuration is %q, want %q in it", x.Configuration, c.yaml)
			}
		})
	}
}

// What cannot be is refused with the field, the value and what is wanted.
func TestWhatIfRefuses(t *testing.T) {
	for want, c := range map[string]Change{
		"apps.other: there is no such app": {Apps: map[string]AppChange{"other": {}}},
		"apps.app.load: 9 is not from 0":   {Apps: map[string]AppChange{"app": {Load: at(9)}}},
		"apps.app.load: NaN":               {Apps: map[string]AppChange{"app": {Load: at(math.NaN())}}},
		"apps.app.slo_ms: 0":               {Apps: map[string]AppChange{"app": {SLOMS: at(0)}}},
		"apps.app.accuracy_floor: 2":       {Apps: map[string]AppChange{"app": {Floor: at(2)}}},
		"machines.v: there is no such":     {Machines: map[string]int{"v": 1}},
		"machines.w: -1 is not":            {Machines: map[string]int{"w": -1}},
		"machines: none is left":           {Machines: map[string]int{"w": 0}},
		"does not exist":                   {System: "such"},
		"slo.latency of 5ms":               {Apps: map[string]AppChange{"app": {SLOMS: at(2)}}},
	} {
		if _, err := question(t, 10, c).Answer(t.Context(), host.Options{}, nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := question(t, 0, Change{}).Answer(t.Context(), host.Options{}, nil); err == nil ||
		!strings.Contains(err.Error(), "no query has arrived") {
		t.Error(err)
	}
}

// A question leaves out what is not of the configuration's file: apps and variants that came to a running server.
func TestWhatIfLeavesOutWhatCameSince(t *testing.T) {
	q := question(t, 10, Change{})
	came := q.Measurements.Latency[0]
	came.Variant = 1000
	q.Measurements.Latency = append([]serving.LatencyPoint{came}, q.Measurements.Latency...)
	q.Arrivals[0].App = 1
	answer, err := q.Answer(t.Context(), host.Options{}, nil)
	if err != nil || answer.Before.Overall.Offered != 9 || len(answer.Notes) != 1 ||
		!strings.Contains(answer.Notes[0], "1 queries are left out") {
		t.Errorf("%v, %+v", err, answer)
	}
	for k := range q.Arrivals {
		q.Arrivals[k].App = 1
	}
	if _, err := q.Answer(t.Context(), host.Options{}, nil); err == nil || !strings.Contains(err.Error(), "not in it") {
		t.Errorf("all came since: %v", err)
	}
}

// A question from anywhere changes a configuration, or is refused: nothing panics.
func FuzzChange(f *testing.F) {
	f.Add([]byte(`{"apps":{"app":{"load":2,"slo_ms":50,"accuracy_floor":0.8}},"machines":{"w":3},"system":"proteus"}`))
	f.Add([]byte(`{"budget":1,"machines":{"w":0}}`))
	o, err := host.Open("testdata/whatif.yaml", host.Options{})
	if err != nil {
		f.Fatal(err)
	}
	arrivals := even(20, time.Second)
	f.Fuzz(func(t *testing.T, data []byte) {
		var c Change
		if json.Unmarshal(data, &c) != nil {
			return
		}
		changed, err := changed(o, &c, host.Options{})
		if err != nil {
			return
		}
		offered, err := c.scaled(changed, arrivals, time.Second)
		if err != nil {
			return
		}
		if _, err := c.snippet(changed, offered, time.Second); err != nil {
			t.Error(err)
		}
	})
}
