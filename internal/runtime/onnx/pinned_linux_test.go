//go:build cgo

package onnx

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// pinning returns a backend that pins, and what launches an instance on it.
func pinning(tb testing.TB, path string, pin bool, tell func(error)) func(cores int) *instance {
	tb.Helper()
	b, err := New(Config{Models: map[serving.VariantID]Model{0: {Path: path}}, Tell: tell,
		Device: func(serving.WorkerID) Device { return Device{Pin: pin} }})
	if err != nil {
		tb.Fatal(err)
	}
	return func(cores int) *instance {
		r, err := b.Launch(tb.Context(), dataplane.InstanceSpec{
			Variants: []serving.VariantID{0}, BatchLimit: 1, Slots: 1, Cores: cores,
		})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = r.Close() })
		return r.(*instance)
	}
}

// allowed lists the processors that this thread may use.
func allowed(t testing.TB) (out []int) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for c := range len(set) * 64 {
		if set.IsSet(c) {
			out = append(out, c)
		}
	}
	return out
}

// Instances with cores of their own have processors of their own, for as long as they are there. One for which too few
// are left runs on any, and that is told.
func TestInstancesHaveProcessorsOfTheirOwn(t *testing.T) {
	needRuntime(t)
	all := allowed(t)
	var told []error
	launch := pinning(t, write(t, mlp(8, 8)), true, func(err error) { told = append(told, err) })
	where := func(in *instance) (at []int) {
		t.Helper()
		if err := in.pinned[0].on(func() error { at = allowed(t); return nil }); err != nil {
			t.Fatal(err)
		}
		return at
	}
	if any := launch(0); !slices.Equal(where(any), all) {
		t.Errorf("an instance without cores of its own runs on %v, want all of %v", where(any), all)
	}
	var used []int
	var instances []*instance
	for range all {
		in := launch(1)
		at := where(in)
		if len(at) != 1 || slices.Contains(used, at[0]) {
			t.Errorf("an instance runs on %v, others on %v", at, used)
		}
		used, instances = append(used, at...), append(instances, in)
	}
	if len(told) > 0 {
		t.Errorf("told %v", told)
	}
	if in := launch(1); !slices.Equal(where(in), all) || len(told) != 1 {
		t.Errorf("without a processor left, an instance runs on %v; told %v", where(in), told)
	}
	was := where(instances[0])
	if err := instances[0].Close(); err != nil {
		t.Fatal(err)
	}
	in := launch(1)
	if at := where(in); !slices.Equal(at, was) {
		t.Errorf("the next instance runs on %v, want %v", at, was)
	}
	batch := dataplane.Batch{Items: 1, Portions: []dataplane.Portion{{Items: 1,
		Inputs: []tensor.Tensor{floats("x", []int64{1, 8}, make([]float32, 8)...)}}}}
	if err := in.Run(t.Context(), &batch); err != nil {
		t.Error(err)
	}
}

// BenchmarkPinned runs as many instances of one thread as there are processors beside each other, free and pinned, and
// prints what the slowest runs take.
func BenchmarkPinned(b *testing.B) {
	needRuntime(b)
	path := write(b, mlp(512, 2048))
	for _, pin := range []bool{false, true} {
		b.Run(fmt.Sprintf("pinned=%v", pin), func(b *testing.B) {
			launch := pinning(b, path, pin, func(err error) { b.Fatal(err) })
			var all sync.WaitGroup
			times := make([][]time.Duration, len(allowed(b)))
			for k := range times {
				in := launch(1)
				batch := dataplane.Batch{Items: 1, Portions: []dataplane.Portion{{Items: 1,
					Inputs: []tensor.Tensor{floats("x", []int64{1, 512}, make([]float32, 512)...)}}}}
				all.Go(func() {
					for range b.N {
						begun := time.Now()
						if err := in.Run(b.Context(), &batch); err != nil {
							b.Error(err)
							return
						}
						times[k] = append(times[k], time.Since(begun))
					}
				})
			}
			all.Wait()
			sorted := slices.Concat(times...)
			slices.Sort(sorted)
			for _, p := range []int{50, 99} {
				b.ReportMetric(float64(sorted[(len(sorted)-1)*p/100].Microseconds()), fmt.Sprintf("p%d-us", p))
			}
		})
	}
}
