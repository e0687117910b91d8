package config

import (
	"testing"

	"github.com/sluice-serving/sluice/internal/bounded"
)

// No fn.yaml makes the reader panic or take much memory.
func FuzzParseFunction(f *testing.F) {
	f.Add([]byte("name: f\nmodel: m.onnx\nslo: {latency: 50ms}\n"))
	f.Add([]byte("name: [f\nlabels: {a: &x b, c: *x}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer bounded.Watch(t, bounded.Fuzz(len(data)))()
		_, _ = ParseFunction(data, "fn.yaml")
	})
}
