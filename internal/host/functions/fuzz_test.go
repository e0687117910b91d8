package functions

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/bounded"
	"github.com/sluice-serving/sluice/internal/host/store"
	"github.com/sluice-serving/sluice/serving"
)

// No deployment makes the server panic or take much memory, and none of a model that it does not have is taken.
func FuzzDeployment(f *testing.F) {
	f.Add("f", []byte(`{"model_sha256":"`+strings.Repeat("0", 64)+`","slo":"50ms","labels":{"a":"b"}}`))
	f.Add("%00", []byte(`{"latency_ns":-1}`))
	r := newRig(f, f.TempDir()) // one for all: to make one writes files, and nothing is taken
	f.Fuzz(func(t *testing.T, name string, body []byte) {
		defer bounded.Watch(t, bounded.Fuzz(len(name)+len(body)))()
		q := httptest.NewRequest(http.MethodPut, PathFunctions+"x", strings.NewReader(string(body)))
		q.URL.Path = PathFunctions + name
		q.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		Handler(r.m, 1000).ServeHTTP(w, q)
		if w.Code == http.StatusOK {
			t.Errorf("%q was taken as %s", body, w.Body)
		}
	})
}

// No stored idle times make the reader panic: what it cannot read is left out and named.
func FuzzIdleTimes(f *testing.F) {
	f.Add("f", []byte(`{"saved":"2026-01-01T00:00:00Z","idle":5,"memory":"AAAA"}`))
	f.Add("f", []byte(`{"idle":-1}`))
	f.Fuzz(func(t *testing.T, name string, value []byte) {
		if name == "" || len(name) > 100 {
			return
		}
		s, err := store.OpenFunctions(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Keep(store.IdleTable, map[string][]byte{name: append([]byte{}, value...)}); err != nil {
			t.Fatal(err)
		}
		defer bounded.Watch(t, bounded.Fuzz(len(value)))()
		if _, _, err := OpenIdleTimes(s, time.Now()); err != nil {
			t.Error(err)
		}
	})
}

// FuzzKeptProfile: no profile in a record of the store makes it panic or take much memory.
func FuzzKeptProfile(f *testing.F) {
	f.Add([]byte(`{"version":1,"created":"2026-01-01T00:00:00Z","points":[{"variant":"f-v1","device_type":"cpu",` +
		`"batch":1,"concurrency":1,"samples":1,"mean_us":1,"p50_us":1,"p90_us":1,"p95_us":1,"p99_us":1}],"loads":[]}`))
	f.Add([]byte(`{"points":[null]}`))
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "cpu"}}, Variants: []serving.Variant{{Name: "f-v1", MaxBatch: 4}},
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		defer bounded.Watch(t, bounded.Fuzz(len(record)))()
		_, _ = withProfile(spec, 0, serving.Measurements{}, record)
	})
}
