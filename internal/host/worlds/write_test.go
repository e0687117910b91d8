package worlds

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/load"
	"github.com/sluice-serving/sluice/internal/measure/worlds"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// The files of a world, read as every command reads them, are the world: machines, apps, latencies, load.
func TestFilesAreTheWorld(t *testing.T) {
	for n := range 48 {
		w := worlds.Generate(9, n)
		folder := filepath.Join(t.TempDir(), w.Name)
		if err := Write(folder, w); err != nil {
			t.Fatal(err)
		}
		opened, err := host.Open(filepath.Join(folder, worlds.ConfigName), host.Options{})
		if err != nil {
			t.Fatalf("world %s: %v", w.Name, err)
		}
		for _, part := range []struct {
			name      string
			got, want any
		}{
			{"device types", opened.Spec().DeviceTypes, w.Spec.DeviceTypes},
			{"workers", opened.Spec().Workers, w.Spec.Workers},
			{"apps", opened.Spec().Apps, w.Spec.Apps},
			{"stages", opened.Spec().Stages, w.Spec.Stages},
			{"variants", opened.Spec().Variants, w.Spec.Variants},
			{"demand", opened.Demand(), w.Demand},
		} {
			if !reflect.DeepEqual(part.got, part.want) {
				t.Fatalf("world %s: %s are\n%+v\nwant\n%+v", w.Name, part.name, part.got, part.want)
			}
		}
		profiled, err := opened.Profile()
		if err != nil {
			t.Fatalf("world %s: %v", w.Name, err)
		}
		if a, b := ordered(profiled.Measurements()), ordered(w.Measurements); !reflect.DeepEqual(a, b) {
			t.Fatalf("world %s: measurements are\n%+v\nwant\n%+v", w.Name, a, b)
		}
		read, err := load.ReadWorkload(filepath.Join(folder, worlds.WorkloadName))
		if err != nil {
			t.Fatalf("world %s: %v", w.Name, err)
		}
		if a, b := arrivals(t, w, read), arrivals(t, w, &w.Workload); !slices.EqualFunc(a, b, same) {
			t.Errorf("world %s: the file's arrivals are others: %d and %d", w.Name, len(a), len(b))
		}
	}
}

func same(a, b workload.Arrival) bool { return reflect.DeepEqual(a, b) }

func ordered(m serving.Measurements) serving.Measurements {
	slices.SortFunc(m.Latency, func(a, b serving.LatencyPoint) int {
		return ((int(a.Variant)-int(b.Variant))*8+int(a.DeviceType)-int(b.DeviceType))*4096 + a.Items - b.Items
	})
	slices.SortFunc(m.Load, func(a, b serving.LoadPoint) int {
		return (int(a.Variant)-int(b.Variant))*8 + int(a.DeviceType) - int(b.DeviceType)
	})
	return m
}

func arrivals(t *testing.T, w *worlds.World, s *workload.Spec) []workload.Arrival {
	t.Helper()
	src, err := s.Source(w.App)
	if err != nil {
		t.Fatalf("world %s: %v", w.Name, err)
	}
	return workload.Collect(src, 1<<20)
}

// The same seed writes the same bytes.
func TestSameSeedSameBytes(t *testing.T) {
	for n := range 16 {
		a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
		for _, folder := range []string{a, b} {
			if err := Write(folder, worlds.Generate(11, n)); err != nil {
				t.Fatal(err)
			}
		}
		list, err := os.ReadDir(a)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			x, _ := os.ReadFile(filepath.Join(a, f.Name()))
			y, err := os.ReadFile(filepath.Join(b, f.Name()))
			if err != nil || string(x) != string(y) {
				t.Errorf("world %d: %s differs", n, f.Name())
			}
		}
	}
}
