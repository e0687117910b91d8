package systems

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/engine/journal"
	"github.com/sluice-serving/sluice/internal/simtest"
)

// The header of a journal leads back to the components of every system and to the options that they read: those of the
// system, and others that a configuration gives.
func TestEverySystemIsRecorded(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	c := simtest.Uniform(2, time.Millisecond, time.Millisecond, time.Second, 8)
	for _, s := range All() {
		for round := range 30 {
			if round > 0 {
				given := make(map[string]any)
				for at := range table {
					if s.reads(&table[at]) && rng.IntN(2) == 0 {
						given[table[at].Name] = some(rng, &table[at])
					}
				}
				_ = s.Set(given) // what another keep-alive rule would read stays out
			}
			h := journal.Header{
				Statistic: "p95", Provides: c.Planner.Provides(), Spec: c.Spec, Measurements: c.Measurements,
			}
			s.Record(&h)
			h = writtenAndRead(t, h)
			got, err := recorded(h)
			if err != nil {
				t.Fatalf("%s: %v", s.Name, err)
			}
			if got.Name != s.Name || got.Options.Learn != s.Options.Learn ||
				got.Options.Following.TurnOff != s.Options.Following.TurnOff {
				t.Errorf("recorded:\n%+v\nread back:\n%+v", s, got)
			}
			a, b := s.Components()[1:], got.Components()[1:] // without the planner
			for n := range a {
				if a[n] != b[n] || a[n].Kind != Engine &&
					!same(built(t, a[n], c, s.Options), built(t, b[n], c, got.Options)) {
					t.Errorf("system %s with %v: %v is read back as %v of %v", s.Name, s.Options, a[n], b[n],
						got.Options)
				}
			}
			if _, err := Recorded(h); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
		}
	}
}

func writtenAndRead(t *testing.T, h journal.Header) journal.Header {
	t.Helper()
	var file bytes.Buffer
	w, err := journal.NewWriter(&file, h)
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := journal.NewReader(&file)
	if err != nil {
		t.Fatal(err)
	}
	return r.Header()
}

// Journals hold the options that engines read and no others, in the form of earlier versions.
func TestRecordedOptions(t *testing.T) {
	for name, want := range map[string]map[string]string{
		"fcfs": {"idle": "true"}, "openfaas+": {"keep": "keepalive", "linger": "5m0s"}, "proteus-fair": nil,
		"kairos-fluid": nil, "infless-release": {"keep": "lsth"}, "infless-balanced": {"keep": "cheapest"},
		"scrooge": nil,
	} {
		s, err := Get(name)
		if err != nil {
			t.Fatal(err)
		}
		var h journal.Header
		if s.Record(&h); !maps.Equal(h.Settings, want) {
			t.Errorf("%s records %v, want %v", name, h.Settings, want)
		}
	}
	s, err := Named("threshold+aimd")
	if err != nil {
		t.Fatal(err)
	}
	s.Options.Release = true
	var h journal.Header
	if s.Record(&h); !maps.Equal(h.Settings, map[string]string{"release": "true"}) {
		t.Errorf("the batcher aimd records %v", h.Settings)
	}
	// As earlier versions wrote them: with exponents, and with options that no component reads.
	h.Settings = map[string]string{"threshold": "1e+06", "gamma": "0.25", "cold_price": "1h30m0s"}
	if got, err := recorded(h); err != nil || got.Options.Routing.Threshold != 1e6 ||
		got.Options.KeepAlive.Gamma != 0.25 {
		t.Errorf("an earlier journal is read as %+v, %v", got, err)
	}
	// A keep-alive rule that is not named is the one that was the default before journals named it.
	for settings, want := range map[string]string{"": "lsth", "keepalive": "keepalive"} {
		h := journal.Header{Scaler: "ratebands"}
		if settings != "" {
			h.Settings = map[string]string{"keep": settings}
		}
		if got, err := recorded(h); err != nil || got.Options.KeepAlive.Rule != want {
			t.Errorf("keep-alive rule %q is read as %q, %v", settings, got.Options.KeepAlive.Rule, err)
		}
	}
	h.Settings = map[string]string{"gamut": "1"}
	if _, err := Recorded(h); err == nil {
		t.Error("a journal with an option that does not exist was taken")
	}
}
