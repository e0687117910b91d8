//go:build cgo

package onnx

import (
	"errors"
	"math"
	"runtime"
	"testing"
)

// tiny is the bits of a number that is too small to be normal, where no compiler computes with it.
var tiny uint32 = 1 << 20

// A run with a mask takes numbers that are too small to be normal for zero; before and after it they count.
func TestMaskedRunsFlushDenormals(t *testing.T) {
	twice := func() float32 { return 2 * math.Float32frombits(tiny) }
	inside, broken := float32(-1), errors.New("broken")
	m := &model{padding: &padding{}}
	if err := m.flushed(func() error { inside = twice(); return broken }); !errors.Is(err, broken) {
		t.Errorf("the run's error becomes %v", err)
	}
	if known := runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64"; known && inside != 0 {
		t.Errorf("%v counts in a run with a mask", inside)
	}
	func() {
		defer func() { _ = recover() }()
		_ = m.flushed(func() error { panic("on purpose") })
	}()
	for range 100 {
		if twice() == 0 {
			t.Fatal("after the run numbers that are too small to be normal count as zero")
		}
	}
}
