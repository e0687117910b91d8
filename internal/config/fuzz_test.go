package config

import (
	"errors"
	"testing"

	"github.com/sluice-serving/sluice/internal/bounded"
)

// No fn.yaml or chain.yaml makes the reader panic or take much memory.
func FuzzParseFunction(f *testing.F) {
	f.Add([]byte("name: f\nmodel: m.onnx\nslo: {latency: 50ms}\n"))
	f.Add([]byte("name: c\nslo: {latency: 1s}\nstages: [{name: a, variants: [{model: m}]}]\n"))
	f.Add([]byte("name: [f\nlabels: {a: &x b, c: *x}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer bounded.Watch(t, bounded.Fuzz(len(data)))()
		_, err := ParseFunction(data, "fn.yaml")
		if IsChain(data) {
			_, err = ParseChain(data, "chain.yaml")
		}
		var p Problems
		if errors.As(err, &p) {
			for _, x := range p {
				if x.Line < 1 {
					t.Fatalf("without a line: %v", x)
				}
			}
		}
	})
}
