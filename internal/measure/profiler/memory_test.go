package profiler

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/runtime/fake"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// heavy is a backend whose instances take 100 bytes, and 10 for each item of their batch limit. It counts them in used,
// and lacks memory for limits above most.
type heavy struct {
	dataplane.Backend
	used int64
	most int
}

type held struct {
	dataplane.Runner
	of    *heavy
	bytes int64
}

func (h *heavy) Launch(ctx context.Context, spec dataplane.InstanceSpec) (dataplane.Runner, error) {
	if spec.BatchLimit > h.most {
		return nil, dataplane.ErrOutOfMemory
	}
	r, err := h.Backend.Launch(ctx, spec)
	n := int64(100 + 10*spec.BatchLimit)
	h.used += n
	return &held{r, h, n}, err
}

func (r *held) Close() error {
	r.of.used -= r.bytes
	return r.Runner.Close()
}

func TestMeasuresMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heavy{Backend: backend(t, fake.Config{}), used: 1000, most: 100}
		f, err := Run(t.Context(), Config{
			Spec: world(1, 8, time.Second), Backend: h, Input: rows,
			Memory: func(context.Context) (int64, bool) { return h.used, true },
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := Memory{Variant: "a", DeviceType: "cpu", Loaded: 110, Batch: 8, AtBatch: 180}
		if len(f.Memory) != 1 || f.Memory[0] != want {
			t.Errorf("memory %+v, want %+v", f.Memory, want)
		}
		var b bytes.Buffer
		if err := f.Encode(&b); err != nil {
			t.Fatal(err)
		}
		again, err := Decode(&b)
		if err != nil || len(again.Memory) != 1 || again.Memory[0] != want {
			t.Errorf("read again: %+v, %v", again, err)
		}
	})
}

// waiting is a backend whose loads take a second, or a tenth where a spare process waits: one does a while after the
// first load, and takes 500 bytes.
type waiting struct {
	dataplane.Backend
	learned, ready bool
	loads          []time.Duration
}

func (w *waiting) Launch(ctx context.Context, spec dataplane.InstanceSpec) (dataplane.Runner, error) {
	took := time.Second
	if w.ready {
		took = 100 * time.Millisecond
	}
	time.Sleep(took)
	w.loads = append(w.loads, took)
	w.learned, w.ready = true, false
	return w.Backend.Launch(ctx, spec)
}

func (w *waiting) Settle(context.Context) error {
	time.Sleep(time.Minute)
	w.ready = w.learned
	return nil
}

func (w *waiting) SpareMemory() int64 {
	if w.ready {
		return 500
	}
	return 0
}

// A load is measured as it goes while a server runs: in a spare process where one waits. What that takes is in the
// file.
func TestMeasuresLoadsInSpareProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for spares, want := range map[bool]float64{false: 1000, true: 100} {
			w := &waiting{Backend: backend(t, fake.Config{})}
			c := Config{Spec: world(1, 8, time.Second), Backend: w, Input: rows}
			if spares {
				c.Spares = w
			}
			f, err := Run(t.Context(), c, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(f.Loads) != 1 || f.Loads[0].Load < want || f.Loads[0].Load > want+10 {
				t.Errorf("spare processes %v: loads %+v, want %v ms; launches %v", spares, f.Loads, want, w.loads)
			}
			if none := !spares; none != (f.Spares == nil) || spares && f.Spares[0] != (SpareMemory{"cpu", 500}) {
				t.Errorf("spare processes take %+v", f.Spares)
			}
			var b bytes.Buffer
			if err := f.Encode(&b); err != nil {
				t.Fatal(err)
			}
			again, err := Decode(&b)
			if err != nil || len(again.Spares) != len(f.Spares) {
				t.Errorf("read again: %+v, %v", again, err)
			}
		}
	})
	for _, bad := range [][]SpareMemory{{{"", 1}}, {{"cpu", 0}}, {{"cpu", 1}, {"cpu", 2}}} {
		if validSpares(bad) == nil {
			t.Errorf("%+v is valid", bad)
		}
	}
}

// Batches for which memory is lacking are no points, and no plan has them; whether they fail when they run or when they
// are loaded.
func TestLackOfMemoryBoundsBatches(t *testing.T) {
	for name, b := range map[string]func(t *testing.T) dataplane.Backend{
		"runs":  func(t *testing.T) dataplane.Backend { return lacking(t, 4) },
		"loads": func(t *testing.T) dataplane.Backend { return &heavy{Backend: backend(t, fake.Config{}), most: 4} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spec := world(1, 32, time.Second)
				f, err := Run(t.Context(), Config{Spec: spec, Backend: b(t), Slots: 2, Input: rows}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if len(f.Memory) != 1 || f.Memory[0].Most != 4 {
					t.Fatalf("memory %+v, want at most 4 items", f.Memory)
				}
				for _, p := range f.Points {
					if p.Batch > 4 {
						t.Errorf("a point of %d items", p.Batch)
					}
				}
				m, err := f.Measurements(spec)
				if err != nil {
					t.Fatal(err)
				}
				table, err := profile.NewTable(spec, m, profile.P95)
				if err != nil {
					t.Fatal(err)
				}
				if n := profile.BatchLimit(table, spec, 0, 0, 1, time.Hour); n != 4 {
					t.Errorf("plans may have batches of %d items, want 4", n)
				}
			})
		})
	}
}

func lacking(t *testing.T, most int) dataplane.Backend {
	return backend(t, fake.Config{MostItems: func(serving.VariantID) int { return most }})
}

func TestNoMemoryForOneItemIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heavy{Backend: backend(t, fake.Config{}), most: 0}
		f, err := Run(t.Context(), Config{Spec: world(1, 4, time.Second), Backend: h, Input: rows}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if x := f.Failure("a", "cpu"); x == nil || x.Batch != 0 || len(f.Points) > 0 {
			t.Errorf("failure %+v, points %+v", x, f.Points)
		}
	})
}
