package profiler

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/runtime/fake"
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

func TestNoMemoryForOneItemIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heavy{Backend: backend(t, fake.Config{}), most: 0}
		_, err := Run(t.Context(), Config{Spec: world(1, 4, time.Second), Backend: h, Input: rows}, nil)
		if err == nil || !strings.Contains(err.Error(), `"a"`) {
			t.Errorf("error %v", err)
		}
	})
}
