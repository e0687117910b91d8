package systems

import (
	"bytes"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/engine/journal"
	"github.com/sluice-serving/sluice/internal/simtest"
)

// The header of a journal leads back to the parts of every system and to all options that they read.
func TestEverySystemIsRecorded(t *testing.T) {
	c := simtest.Uniform(2, time.Millisecond, time.Millisecond, time.Second, 8)
	for _, s := range All() {
		h := journal.Header{
			Statistic: "p95", Provides: c.Planner.Provides(), Spec: c.Spec, Measurements: c.Measurements,
		}
		s.Record(&h)
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
		got, err := recorded(r.Header())
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		want := System{Name: s.Name, Router: s.Router, Batcher: s.Batcher, Scaler: s.Scaler, Options: s.Options}
		o := &want.Options // that only planners read
		o.Policies, o.Renting, o.Packing, o.Pipelines = Policies{}, Renting{}, Packing{}, Pipelines{}
		o.Planning = Planning{Oddities: o.Planning.Oddities}
		if got != want {
			t.Errorf("recorded:\n%+v\nread back:\n%+v", want, got)
		}
		if _, err := Recorded(r.Header()); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}
