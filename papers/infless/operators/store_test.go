package operators

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/measure/profiler"
)

var host = profiler.Host{CPU: "a processor", Cores: 2, OS: "linux/amd64", ONNXRuntime: "1.30.0"}

// TestStoreKeeps checks that times are read as they were written, and that no other file remains.
func TestStoreKeeps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "below", "operators.json")
	s, err := Open(path, host)
	if err != nil {
		t.Fatal(err)
	}
	want := Timing{Best: 1.5, Typical: 2, Runs: 7}
	s.Put("Relu", want)
	if err := s.Save(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(path, host)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := again.Get("Relu"); !ok || got != want || again.Len() != 1 {
		t.Errorf("read %+v, %v, %d", got, ok, again.Len())
	}
	if _, ok := again.Get("Tanh"); ok {
		t.Error("an operator was known that nobody measured")
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 1 {
		t.Errorf("the folder holds %v, %v", files, err)
	}
}

// TestStoreRefuses checks that times of another machine and implausible times are errors.
func TestStoreRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "operators.json")
	s, err := Open(path, host)
	if err != nil {
		t.Fatal(err)
	}
	s.Put("Relu", Timing{Best: 1, Typical: 1, Runs: 1})
	if err := s.Save(); err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(*profiler.Host){
		func(h *profiler.Host) {
			h.CPU = "another"
		}, func(h *profiler.Host) { h.Cores = 4 }, func(h *profiler.Host) { h.ONNXRuntime = "1.31.0" },
	} {
		other := host
		change(&other)
		if _, err := Open(path, other); err == nil ||
			!strings.Contains(err.Error(), "times of one do not hold on the other") ||
			!strings.Contains(err.Error(), path) {
			t.Errorf("on %+v the error is %v", other, err)
		}
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for old, bad := range map[string]string{
		"sluice-operators/1": "sluice-operators/9", `"best_us": 1`: `"best_us": -1`,
		`"typical_us": 1`: `"typical_us": 0.5`, `"runs": 1`: `"runs": 0`,
		`"operators"`: `"oporators"`, "}": "",
	} {
		if err := os.WriteFile(path, []byte(strings.Replace(string(good), old, bad, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, host); err == nil {
			t.Errorf("with %s instead of %s the file was read", bad, old)
		}
	}
}

// memoryTable is a Table in memory that counts writes.
type memoryTable struct {
	entries map[string][]byte
	writes  int
}

func (s *memoryTable) Each(do func(string, []byte) error) error {
	for k, v := range s.entries {
		if err := do(k, v); err != nil {
			return err
		}
	}
	return nil
}

func (s *memoryTable) Keep(entries map[string][]byte) error {
	s.writes++
	for k, v := range entries {
		if v == nil {
			delete(s.entries, k)
		} else {
			s.entries[k] = v
		}
	}
	return nil
}

// TestTableKeeps checks that a table keeps times under keys of any length, that only new times are written, and that
// times of another machine and implausible ones are removed.
func TestTableKeeps(t *testing.T) {
	on := &memoryTable{entries: map[string][]byte{"junk": []byte("junk")}}
	s, err := OpenTable(on, host)
	if err != nil || s.Len() != 0 || len(on.entries) != 0 {
		t.Fatalf("%d operators, %v in the table, %v", s.Len(), on.entries, err)
	}
	want := Timing{Best: 1.5, Typical: 2, Runs: 7}
	long := strings.Repeat("x", 1<<16)
	s.Put("Relu", want)
	s.Put(long, want)
	before := on.writes
	for range 2 {
		if err := s.Save(); err != nil {
			t.Fatal(err)
		}
	}
	if on.writes != before+1 || len(on.entries) != 2 {
		t.Errorf("%d writes of two operators, %d entries", on.writes-before, len(on.entries))
	}
	for key := range on.entries {
		if len(key) > maxKeyLength {
			t.Errorf("a key of %d bytes", len(key))
		}
	}
	again, err := OpenTable(on, host)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"Relu", long} {
		if got, ok := again.Get(key); !ok || got != want {
			t.Errorf("%.10s: %+v, %v", key, got, ok)
		}
	}
	other := host
	other.CPU = "another"
	if s, err = OpenTable(on, other); err != nil || s.Len() != 0 || len(on.entries) != 0 {
		t.Errorf("on another machine %d operators are known, %d in the table, %v", s.Len(), len(on.entries), err)
	}
}
