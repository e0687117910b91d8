package workload

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-serving/sluice/serving"
)

func traffic(seed uint64) *Spec {
	return &Spec{Seed: seed, DurationS: 1000, Apps: []AppSpec{
		{App: "a", Process: "sessions", Sessions: SessionsSpec{Clients: 12, StayS: 20, RateMin: 2, RateMax: 5}},
		{App: "b", Rate: 3},
		{
			App: "a", Process: "sessions", Sessions: SessionsSpec{Always: 1, RateMin: 10, RateMax: 10},
			Items: ItemsSpec{Distribution: "uniform", Min: 1, Max: 4},
		},
	}}
}

// Every client sends at equal gaps from From until Until, as many queries as fit. Clients returns the same clients.
func TestSessions(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		s := traffic(seed)
		stays, err := s.Clients(byLetter)
		if err != nil {
			t.Fatal(err)
		}
		if len(stays) != 13 {
			t.Fatalf("seed %d: %d clients, want 13", seed, len(stays))
		}
		src, err := s.Source(byLetter)
		if err != nil {
			t.Fatal(err)
		}
		times := make(map[uint64][]serving.Time)
		last := serving.Time(0)
		for a, ok := src.Next(); ok; a, ok = src.Next() {
			if a.At < last {
				t.Fatalf("seed %d: time goes back to %v", seed, a.At)
			}
			last = a.At
			if (a.App == 0) != (a.Stream != 0) {
				t.Fatalf("seed %d: a query of app %d is of stream %d", seed, a.App, a.Stream)
			}
			times[a.Stream] = append(times[a.Stream], a.At)
		}
		seen := make(map[uint64]bool)
		for k, x := range stays {
			always := x.Rate == 10
			if seen[x.Stream] || x.App != 0 || k > 0 && x.From < stays[k-1].From || x.From < 0 || x.Until > 1000e9 ||
				x.Until.Sub(x.From).Seconds() < 20 ||
				!always && !(x.Rate >= 2 && x.Rate <= 5) || always && (x.From != 0 || x.Until != 1000e9) {
				t.Errorf("seed %d: %+v", seed, x)
			}
			seen[x.Stream] = true
			at := times[x.Stream]
			if want := int(math.Ceil((x.Until - x.From).Seconds() * x.Rate)); len(at) != want {
				t.Errorf("seed %d: %d queries of %+v, want %d", seed, len(at), x, want)
			}
			for n := range at {
				if want := x.From.Seconds() + float64(n)/x.Rate; math.Abs(at[n].Seconds()-want) > 1e-8 {
					t.Fatalf("seed %d: query %d of stream %d at %v, want %v", seed, n, x.Stream, at[n], want)
				}
			}
		}
	}
}

// On average a third of the clients are present, because the distance of two random instants is a third of the time.
func TestClientsThatAreThere(t *testing.T) {
	s := &Spec{
		Seed: 1, DurationS: 100, Apps: []AppSpec{
			{App: "a", Process: "sessions", Sessions: SessionsSpec{Clients: 20_000, RateMin: 1, RateMax: 3}},
		},
	}
	stays, err := s.Clients(byLetter)
	if err != nil {
		t.Fatal(err)
	}
	there, rate := 0.0, 0.0
	for _, x := range stays {
		there += (x.Until - x.From).Seconds()
		rate += x.Rate
	}
	n := float64(len(stays))
	// Standard deviations of the means: sqrt(1/18) of the time for a distance, sqrt(1/3) for a uniform rate.
	if there /= n; math.Abs(there-100.0/3) > 4*100*math.Sqrt(1.0/18/n) {
		t.Errorf("stays of %v s in the mean (seed 1)", there)
	}
	if rate /= n; math.Abs(rate-2) > 4*math.Sqrt(1.0/3/n) {
		t.Errorf("rates of %v/s in the mean (seed 1)", rate)
	}
}

func TestBadSessions(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		"clients and always": func(s *Spec) { s.Apps[0].Sessions.Clients = 0 },
		"rate_min":           func(s *Spec) { s.Apps[0].Sessions.RateMin = 6 },
		"stay_s":             func(s *Spec) { s.Apps[0].Sessions.StayS = 501 },
		"beside sessions":    func(s *Spec) { s.Apps[0].Rate = 1 },
		"make it sessions":   func(s *Spec) { s.Apps[0].Process = "poisson" },
		"duration_s":         func(s *Spec) { s.DurationS, s.MaxCount = 0, 10 },
		"at least 1 ms":      func(s *Spec) { s.DurationS = 1e-9 },
	} {
		s := traffic(1)
		change(s)
		if _, err := s.Clients(byLetter); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error about %q", err, want)
		}
	}
}

// The session in the documentation is valid.
func TestDocumentedSessions(t *testing.T) {
	page, err := os.ReadFile("../../docs/workload.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "process: sessions` is")
	_, rest, _ = strings.Cut(rest, "```yaml\n")
	text, _, _ := strings.Cut(rest, "```")
	var s Spec
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&s); err != nil {
		t.Fatal(err)
	}
	stays, err := s.Clients(func(string) (serving.AppID, error) { return 0, nil })
	if err != nil || len(stays) != 12 {
		t.Errorf("%d clients, %v", len(stays), err)
	}
}

// A recorded run keeps the streams of its queries.
func TestRecordsKeepStreams(t *testing.T) {
	var b bytes.Buffer
	w, err := NewRecordWriter(&b, RecordHeader{})
	if err != nil {
		t.Fatal(err)
	}
	for _, stream := range []uint64{1<<64 - 1, 0} {
		if err := w.Write(&Record{App: "a", Stream: stream}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	got, _, err := ReadArrivals(&b, byLetter, nil)
	if err != nil || len(got) != 2 || got[0].Stream != 1<<64-1 || got[1].Stream != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}
