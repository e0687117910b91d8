package host

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/api/access"
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/engine/journal"
	"github.com/sluice-serving/sluice/serving"
)

// Journals of earlier runs are kept beside the new one, a few of them.
func TestJournalsOfEarlierRunsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.journal")
	if err := RotateJournal(path); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"1", "2", "3", "4", "5", "6"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := RotateJournal(path); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{".1": "6", ".2": "5", ".3": "4", ".4": "3"} {
		if b, err := os.ReadFile(path + name); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v, want %q", name, b, err, want)
		}
	}
	if left, err := filepath.Glob(path + "*"); err != nil || len(left) != access.KeptFiles {
		t.Errorf("%v, %v: want %d journals", left, err, access.KeptFiles)
	}
}

// A full disk is told once, when it is met.
func TestFullDisksAreToldAtOnce(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	planned, err := onFakes(t).Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	j, err := planned.OpenJournal("/dev/full", 0o600, math.MaxInt64, &JournalCounts{},
		func(error) { told++ })
	if err != nil {
		t.Fatal(err)
	}
	for range 100_000 {
		j.Record(0, nil, nil)
	}
	if err := j.Close(); err == nil || told != 1 {
		t.Errorf("told %d times; at the end: %v", told, err)
	}
}

// A journal ends at its limit: what is written can be read, and what is not is counted.
func TestTheJournalIsBounded(t *testing.T) {
	planned, err := onFakes(t).Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "run.journal")
	var counts JournalCounts
	var failure error
	const limit, steps = 1 << 20, 100_000
	j, err := planned.OpenJournal(path, 0o600, limit, &counts, func(err error) { failure = err })
	if err != nil {
		t.Fatal(err)
	}
	for k := range steps {
		j.Record(serving.Time(k), []engine.Input{engine.NewQueryCancelled(serving.QueryID(k + 1))}, nil)
	}
	if err := j.Close(); !errors.Is(err, errJournalFull) || !errors.Is(failure, errJournalFull) {
		t.Errorf("%v, %v: want that it is full", err, failure)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || st.Size() > limit || uint64(st.Size()) != counts.Written.Load() {
		t.Errorf("%d bytes of %d, %v", st.Size(), counts.Written.Load(), err)
	}
	r, err := journal.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	read := uint64(0)
	for {
		if _, err := r.Next(); err != nil {
			break
		}
		read++
	}
	// One step may be cut in two.
	if missed := counts.Missed.Load(); read == 0 || read+missed > steps || read+missed+1 < steps {
		t.Errorf("%d of %d steps are read, %d were counted as missed", read, steps, missed)
	}
}

// onFakes is a configuration whose worker only waits.
func onFakes(t *testing.T) *Profiled {
	t.Helper()
	return onFakesWith(t, "", Options{})
}

// onFakesWith is onFakes with more settings of the app.
func onFakesWith(t *testing.T, more string, options Options) *Profiled {
	t.Helper()
	f, err := config.Parse([]byte(`
version: 1
device_types: [{name: d}]
workers: [{name: w, backend: {kind: fake, latency: 4ms}}]
apps: [{name: app, slo: {latency: 100ms}, inputs: [{name: x, datatype: FP32, shape: [-1, 4]}], variants: [{name: v}]`+
		more+"}]\n"), filepath.Join(t.TempDir(), "sluice.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	o, err := OpenFile(f, options)
	if err != nil {
		t.Fatal(err)
	}
	p, err := o.Profile()
	if err != nil {
		t.Fatal(err)
	}
	return p
}
