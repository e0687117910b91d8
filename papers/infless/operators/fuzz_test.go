package operators

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sluice-serving/sluice/internal/bounded"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
)

// oneEntry is a table with one entry.
type oneEntry struct {
	key   string
	value []byte
}

func (x oneEntry) Each(do func(string, []byte) error) error { return do(x.key, x.value) }
func (x oneEntry) Keep(map[string][]byte) error             { return nil }

// No entry of a table and no file of operator profiles makes the readers panic or take much memory.
func FuzzOpen(f *testing.F) {
	f.Add("Conv", []byte(`{"best":1,"typical":2,"runs":3,"host":""}`))
	f.Add("", []byte(`{"format":"sluice operator profiles 1","host":{},"operators":{"a":{}}}`))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		path := filepath.Join(t.TempDir(), "operators.json")
		if err := os.WriteFile(path, value, 0o600); err != nil {
			t.Fatal(err)
		}
		defer bounded.Watch(t, bounded.Fuzz(len(key)+len(value)))()
		if _, err := OpenTable(oneEntry{key, value}, profiler.Host{}); err != nil {
			t.Errorf("one damaged entry: %v", err)
		}
		_, _ = Open(path, profiler.Host{})
	})
}
