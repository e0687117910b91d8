package host

import (
	"os"
	"path/filepath"
	"testing"
)

// Journals of earlier runs are kept beside the new one, a few of them.
func TestJournalsOfEarlierRunsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.journal")
	if err := rotateJournal(path); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"1", "2", "3", "4", "5", "6"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := rotateJournal(path); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{".1": "6", ".2": "5", ".3": "4", ".4": "3"} {
		if b, err := os.ReadFile(path + name); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v, want %q", name, b, err, want)
		}
	}
	if left, err := filepath.Glob(path + "*"); err != nil || len(left) != keptJournals {
		t.Errorf("%v, %v: want %d journals", left, err, keptJournals)
	}
}

// A full disk is told once, when it is met.
func TestFullDisksAreToldAtOnce(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	planned, err := profiled(t, fakes).Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	record, closing, err := planned.openJournal("/dev/full", 0o600, func(error) { told++ })
	if err != nil {
		t.Fatal(err)
	}
	for range 100_000 {
		record(0, nil, nil)
	}
	if err := closing(); err == nil || told != 1 {
		t.Errorf("told %d times; at the end: %v", told, err)
	}
}
