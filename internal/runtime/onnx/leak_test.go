//go:build cgo

package onnx

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/tensor"
)

// resident returns the memory the process has in RAM, in bytes.
func resident(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory() // Go's own garbage is not the question
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skipf("no /proc on this system: %v", err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

func TestLoadingAndRunningDoNotLeak(t *testing.T) {
	// glibc gives each thread a heap of its own, and what one thread freed another does not reuse. On one thread the
	// memory of the process shows what was really kept.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// 4 MiB of weights: what is not given back on unloading shows.
	const n = 1024
	g := onnxmodel.NewGraph("leak").Input("x", onnxmodel.Float32, -1, n).Initializer("w", make([]float32, n*n), n, n).
		Node("MatMul", []string{"x", "w"}, []string{"y"}).Output("y", onnxmodel.Float32, -1, n)
	in := launch(t, 4, 1, Model{Path: write(t, g)}, Model{Path: write(t, onnxmodel.Identity(onnxmodel.String, -1))})
	cycle := func(times int) {
		for range times {
			if err := in.Unload(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			if err := in.Load(t.Context(), 0, 1); err != nil {
				t.Fatal(err)
			}
			for range 20 {
				if err := in.Run(t.Context(), one(0, floats("x", []int64{2, n}, make([]float32, 2*n)...))); err != nil {
					t.Fatal(err)
				}
				if err := in.Run(t.Context(), one(1, sample("input", tensor.Bytes, 1, 4))); err != nil {
					t.Fatal(err)
				}
				_ = in.Run(t.Context(), one(0, floats("x", []int64{1, 1}, 1)))
			}
		}
	}
	cycle(5)
	before := resident(t)
	cycle(40)
	if grown := resident(t) - before; grown > 80<<20 { // a leak of the weights alone would be 160 MiB
		t.Errorf("40 cycles grew the process by %d MiB", grown>>20)
	}
}
