package loadgen

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sluice-serving/sluice/internal/bounded"
)

// No folder of samples makes the reader panic, and samples that it takes can be read.
func FuzzLoadSamples(f *testing.F) {
	f.Add([]byte(`{"count":2,"inputs":[{"name":"x","datatype":"FP32","shape":[1],"file":"x.bin"}]}`), make([]byte, 8))
	f.Add([]byte(`{"count":1,"inputs":[{"name":"x","datatype":"BYTES","shape":[],"file":"x.bin"}],`+
		`"labels":{"file":"x.bin"}}`), []byte("\x01\x00\x00\x00a"))
	f.Fuzz(func(t *testing.T, list, data []byte) {
		dir := t.TempDir()
		for name, b := range map[string][]byte{"samples.json": list, "x.bin": data} {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		defer bounded.Watch(t, bounded.Fuzz(len(list)+len(data)))()
		s, err := LoadSamples(dir)
		if err != nil {
			return
		}
		for _, x := range s.Tensors(0, 1) {
			if err := x.Validate(); err != nil {
				t.Errorf("accepted: %v", err)
			}
		}
	})
}
