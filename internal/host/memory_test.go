package host

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
)

// Spare processes take memory of the machines that keep some, which plans leave free; no accelerator's.
func TestSpareProcessesTakeMemory(t *testing.T) {
	for spares, want := range map[int]int64{0: 1 << 30, 1: 1<<30 - 200<<20} {
		dir := t.TempDir()
		path := filepath.Join(dir, "sluice.yaml")
		for name, text := range map[string]string{path: fmt.Sprintf(`
version: 1
device_types: [{name: any, cores: 1, memory: 1GiB}]
workers: [{name: w, backend: {kind: python, spare_processes: %d}}]
apps: [{name: a, slo: {latency: 1s}, variants: [{python: "m.py:M"}]}]
`, spares), filepath.Join(dir, "m.py"): "class M: pass"} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		o, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		f := &profiler.File{
			Version: profiler.Version, Spares: []profiler.SpareMemory{{DeviceType: "any", Bytes: 200 << 20}},
		}
		if got := o.sized(f).Spec().DeviceTypes[0].MemoryBytes; got != want {
			t.Errorf("%d spare processes: %d bytes for models, want %d", spares, got, want)
		}
	}
}

// What was measured takes the place of what the configuration does not say: the most over the device types.
func TestVariantsHaveTheMemoryThatWasMeasured(t *testing.T) {
	file, err := config.Parse([]byte(`
version: 1
device_types: [{name: card, memory: 1GiB}, {name: core}]
workers:
- {name: a, device_type: card, backend: {kind: fake}}
- {name: b, device_type: core, backend: {kind: fake}}
apps: [{name: app, slo: {latency: 1s}, variants: [{name: m}]}]
`), "sluice.yaml")
	if err != nil {
		t.Fatal(err)
	}
	o, err := OpenFile(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := &profiler.File{Version: profiler.Version, Memory: []profiler.Memory{
		{Variant: "m", DeviceType: "card", Loaded: 100 << 20, Batch: 8, AtBatch: 180 << 20},
		{Variant: "m", DeviceType: "core", Loaded: 20 << 20},
	}}
	v := o.sized(f).Spec().Variants[0]
	if v.MemoryBytes != 100<<20 || v.ItemBytes != 10<<20 {
		t.Errorf("memory %d and %d for each item", v.MemoryBytes, v.ItemBytes)
	}
	if o.Spec().Variants[0].MemoryBytes == v.MemoryBytes {
		t.Error("the configuration itself has changed")
	}
}
