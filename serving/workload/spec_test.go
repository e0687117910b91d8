package workload

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-serving/sluice/internal/bounded"
	"github.com/sluice-serving/sluice/serving"
)

func byLetter(app string) (serving.AppID, error) {
	if len(app) != 1 {
		return 0, errors.New("no such app")
	}
	return serving.AppID(app[0] - 'a'), nil
}

const yamlSpec = `
seed: 5
duration_s: 20
apps:
  - app: a
    process: gamma
    shape: 0.2
    rates: [{at_s: 0, rate: 50}, {at_s: 10, rate: 200}]
    interpolate: linear
    items: {distribution: uniform, min: 1, max: 4}
    priority: 2
    timeout_ms: 12.5
    min_accuracy: 0.8
  - app: b
    rates: [{duration_s: 4, rate: 100}, {duration_s: 4, rate: 300}]
`

func TestSpecSource(t *testing.T) {
	var s Spec
	if err := yaml.Unmarshal([]byte(yamlSpec), &s); err != nil {
		t.Fatal(err)
	}
	s.Apps[0].Samples = 10
	read := func() []Arrival {
		src, err := s.Source(byLetter)
		if err != nil {
			t.Fatal(err)
		}
		return Collect(src, 1e6)
	}
	all := read()
	if !reflect.DeepEqual(all, read()) {
		t.Error("two readings of one spec differ")
	}
	last := serving.Time(0)
	n := [2]int{}
	for i, a := range all {
		if a.At < last {
			t.Fatalf("arrival %d goes back from %v to %v", i, last, a.At)
		}
		last = a.At
		n[a.App]++
		if a.App == 0 {
			if a.Timeout != 12500*time.Microsecond || a.Priority != 2 || a.MinAccuracy != 0.8 || a.Items < 1 ||
				a.Items > 4 || a.Variant != serving.None {
				t.Fatalf("arrival %d: %+v", i, a)
			}
			if a.Sample < 0 || a.Sample+a.Items > 10 {
				t.Fatalf("arrival %d: samples [%d, %d) of 10", i, a.Sample, a.Sample+a.Items)
			}
		} else if a.At >= 8e9 || a.Sample != -1 {
			t.Fatalf("arrival %d of b at %v with sample %d: its segments end at 8 s", i, a.At, a.Sample)
		}
	}
	if math.Abs(float64(n[1])-1600) > 3.5*40 {
		t.Errorf("b has %d arrivals, want 1600 within 3.5 standard deviations", n[1])
	}
	if last >= 20e9 || last < 15e9 {
		t.Errorf("last arrival at %v, want shortly before 20 s", last)
	}
}

func TestPurposesHaveRandomNumbersOfTheirOwn(t *testing.T) {
	one := Spec{Seed: 9, DurationS: 3, Apps: []AppSpec{{App: "a", Rate: 100}}}
	two := Spec{
		Seed: 9, DurationS: 3, Apps: []AppSpec{
			{App: "a", Rate: 100, Items: ItemsSpec{Distribution: "uniform", Min: 1, Max: 9}}, {App: "b", Rate: 50},
		},
	}
	s1, _ := one.Source(byLetter)
	s2, _ := two.Source(byLetter)
	var a, b []serving.Time
	for _, x := range Collect(s1, 1e6) {
		a = append(a, x.At)
	}
	for _, x := range Collect(s2, 1e6) {
		if x.App == 0 {
			b = append(b, x.At)
		}
	}
	if !reflect.DeepEqual(a, b) {
		t.Error("sizes and a second app moved the first app's arrivals")
	}
}

func TestMergeOrder(t *testing.T) {
	at := func(app serving.AppID, items int32, times ...serving.Time) Source {
		var out []Arrival
		for _, x := range times {
			out = append(out, Arrival{At: x, App: app, Items: items})
		}
		return FromSlice(out)
	}
	m := Merge(at(2, 1, 1, 5, 5), at(0, 1, 5, 6), at(0, 2, 5), at(1, 1))
	var got []Arrival
	for {
		a, ok := m.Next()
		if !ok {
			break
		}
		got = append(got, a)
	}
	want := []Arrival{
		{At: 1, App: 2, Items: 1}, {At: 5, App: 0, Items: 1}, {At: 5, App: 0, Items: 2}, {At: 5, App: 2, Items: 1},
		{At: 5, App: 2, Items: 1}, {At: 6, App: 0, Items: 1},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("merged %v,\nwant   %v", got, want)
	}
	if _, ok := m.Next(); ok {
		t.Error("a drained merge yields more")
	}
}

func TestLimit(t *testing.T) {
	src := FromSlice([]Arrival{{At: 1}, {At: 2}, {At: 3}})
	if got := len(Collect(Limit(src, 3, -1), 10)); got != 2 {
		t.Errorf("%d arrivals before 3, want 2", got)
	}
	src = FromSlice([]Arrival{{At: 1}, {At: 2}, {At: 3}})
	if got := len(Collect(Limit(src, serving.Never, 1), 10)); got != 1 {
		t.Errorf("%d arrivals, want 1", got)
	}
}

func TestSpecErrorsNameTheField(t *testing.T) {
	ok := func() Spec { return Spec{DurationS: 1, Apps: []AppSpec{{App: "a", Rate: 10}}} }
	for want, change := range map[string]func(*Spec){
		"duration_s":               func(s *Spec) { s.DurationS = -1 },
		"duration_s: is 0":         func(s *Spec) { s.DurationS = 0 },
		"max_count":                func(s *Spec) { s.MaxCount = -1 },
		"apps: is empty":           func(s *Spec) { s.Apps = nil },
		"apps[0].app: no such app": func(s *Spec) { s.Apps[0].App = "nobody" },
		"apps[0].process":          func(s *Spec) { s.Apps[0].Process = "weibull" },
		"apps[0].shape":            func(s *Spec) { s.Apps[0].Process = "gamma" },
		"apps[0].shape: is 2, but": func(s *Spec) { s.Apps[0].Shape = 2 },
		"apps[0].rate":             func(s *Spec) { s.Apps[0].Rate = math.NaN() },
		"apps[0].rates[1]: starts": func(s *Spec) {
			s.Apps[0].Rate = 0
			s.Apps[0].Rates = []Segment{{Rate: 1}, {Rate: 2}}
		},
		"apps[0].rates[0]: rate": func(s *Spec) { s.Apps[0].Rate = 0; s.Apps[0].Rates = []Segment{{Rate: -1}} },
		"apps[0].rates[1]: mixes": func(s *Spec) {
			s.Apps[0].Rate = 0
			s.Apps[0].Rates = []Segment{{Rate: 1, DurationS: 1}, {AtS: 1, Rate: 2}}
		},
		"apps[0].interpolate":  func(s *Spec) { s.Apps[0].Interpolate = "cubic" },
		"apps[0].priority":     func(s *Spec) { s.Apps[0].Priority = -1 },
		"apps[0].timeout_ms":   func(s *Spec) { s.Apps[0].TimeoutMS = -1 },
		"apps[0].min_accuracy": func(s *Spec) { s.Apps[0].MinAccuracy = 2 },
		"apps[0].trace":        func(s *Spec) { s.Apps[0].Process = "trace" },
		"apps[0].items.min":    func(s *Spec) { s.Apps[0].Items = ItemsSpec{Distribution: "uniform"} },
		"apps[0].items.max":    func(s *Spec) { s.Apps[0].Items = ItemsSpec{Distribution: "lognormal"} },
		"apps[0].items.sizes":  func(s *Spec) { s.Apps[0].Items = ItemsSpec{Distribution: "histogram"} },
	} {
		s := ok()
		change(&s)
		_, err := s.Source(byLetter)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one with %q", err, want)
		}
	}
	s := ok()
	if err := s.Validate(); err != nil {
		t.Errorf("a good spec: %v", err)
	}
}

func TestParseRates(t *testing.T) {
	got, err := ParseRates("0:50,10:200, 20:50")
	want := []Segment{{Rate: 50}, {AtS: 10, Rate: 200}, {AtS: 20, Rate: 50}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err = ParseRates("120"); err != nil || got[0].Rate != 120 {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"", "x", "1:50", "0:50,", "0:50,0:60", "0:-1", "0:NaN", "0:1e99"} {
		if _, err := ParseRates(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestParseRange(t *testing.T) {
	for text, want := range map[string][]float64{
		"100:500:100": {100, 200, 300, 400, 500}, "10": {10}, "1:3": {1, 2, 3}, "1:2:0.3": {1, 1.3, 1.6, 1.9},
	} {
		got, err := ParseRange(text)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%q: %v, %v", text, got, err)
		}
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-9 {
				t.Errorf("%q: %v, want %v", text, got, want)
			}
		}
	}
	for _, bad := range []string{"", "0", "5:1", "1:2:0", "1:2:3:4", "1:1e9:0.001", "a:b"} {
		if _, err := ParseRange(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestParseTrace(t *testing.T) {
	got, err := ParseTrace(strings.NewReader("\ufeff# times\n0\n 1.5 \n\n1.5\n2000.000001\n"))
	want := []serving.Time{0, 1500000, 1500000, 2000000001}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for text, where := range map[string]string{
		"1\nx\n": "line 2", "2\n1\n": "line 2", "-1": "line 1", "NaN": "line 1", strings.Repeat("1", 5000): "line 1",
	} {
		if _, err := ParseTrace(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), where) {
			t.Errorf("%.10q: %v, want an error with %q", text, err, where)
		}
	}
}

func TestTraceSpec(t *testing.T) {
	s := Spec{Apps: []AppSpec{{App: "b", Process: "trace", Trace: []serving.Time{3, 3, 9}}}}
	src, err := s.Source(byLetter)
	if err != nil {
		t.Fatal(err)
	}
	got := Collect(src, 10)
	if len(got) != 3 || got[2].At != 9 || got[0].App != 1 || got[0].Items != 1 {
		t.Errorf("got %+v", got)
	}
	s.Apps[0].Trace[2] = 1
	if _, err := s.Source(byLetter); err == nil {
		t.Error("an unsorted trace was accepted")
	}
}

func FuzzParseTrace(f *testing.F) {
	f.Add("0\n1.5\n# x\n\n2e3\n")
	f.Add("1e400\n")
	f.Fuzz(func(t *testing.T, text string) {
		defer bounded.Watch(t, bounded.Fuzz(len(text)))()
		times, err := ParseTrace(strings.NewReader(text))
		if err != nil {
			return
		}
		for i, x := range times {
			if x < 0 || i > 0 && x < times[i-1] {
				t.Fatalf("time %d is %d", i, x)
			}
		}
	})
}

func FuzzParseRates(f *testing.F) {
	f.Add("0:50,10:200,20:50")
	f.Fuzz(func(t *testing.T, text string) {
		defer bounded.Watch(t, bounded.Fuzz(len(text)))()
		segments, err := ParseRates(text)
		if err != nil {
			return
		}
		if _, err := (&AppSpec{Rates: segments}).RateFunction(); err != nil {
			t.Fatalf("%q parses to %v, which makes no rate function: %v", text, segments, err)
		}
	})
}
