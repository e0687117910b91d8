package load

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sluice-serving/sluice/internal/bounded"
)

// No workload file makes the reader panic or take much memory, aliases of YAML included.
func FuzzReadWorkload(f *testing.F) {
	f.Add([]byte("seed: 1\nduration_s: 8\napps: [{app: a, rate: 200}]\n"))
	f.Add([]byte("a: &a [x, x]\nb: &b [*a, *a]\napps: *b\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "w.yaml")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		defer bounded.Watch(t, bounded.Fuzz(len(data)))()
		_, _ = ReadWorkload(path)
	})
}
