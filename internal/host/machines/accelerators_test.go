package machines

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/runtime/native"
)

// cards is a configuration with two workers on accelerators and one on cores.
func cards(t *testing.T, providers, named string) *Fleet {
	t.Helper()
	if _, err := native.ONNXRuntime(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	err := onnxmodel.Identity(onnxmodel.Float32, onnxmodel.Symbolic, 4).Write(
		filepath.Join(dir, "models", "m", "1", "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sluice.yaml")
	text := `
version: 1
device_types: [{name: card, accelerators: 1, memory: 1GiB}, {name: core}]
workers:
  - {name: gpu, device_type: card, count: 2, backend: {providers: [` + providers + `]}` + named + `}
  - {name: cpu, device_type: core}
models: {repository: models}
apps: [{name: app, slo: {latency: 1s}, variants: [{name: m}]}]
`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := f.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	return &Fleet{File: f, Tables: tables, Notice: func(string) {}}
}

// drivers has a program stand for that of the driver, with two accelerators.
func drivers(t *testing.T) {
	t.Helper()
	tool, err := filepath.Abs("../../runtime/device/testdata/nvidia-smi")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SLUICE_NVIDIA_SMI", tool)
}

func TestWorkersHaveAccelerators(t *testing.T) {
	drivers(t)
	for named, want := range map[string][2]string{
		"": {"0", "1"}, `, accelerators: ["1", "0"]`: {"1", "0"},
	} {
		o := cards(t, "cuda, cpu", named)
		list, err := o.Devices(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for k, id := range want {
			if w := list[k]; len(w.Accelerators) != 1 || w.Accelerators[0] != id {
				t.Errorf("%s: worker %+v, want accelerator %s", named, w, id)
			}
			if w := list[k]; w.Provider == "cpu" && !strings.Contains(w.PassedOver, "provider cuda") {
				t.Errorf("worker %+v falls back and does not say why", w)
			}
		}
		if w := list[2]; w.Accelerators != nil || w.Provider != "" {
			t.Errorf("a worker of cores %+v", w)
		}
		a, err := o.accelerators(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if env := a.environment(dataplane.InstanceSpec{Worker: 0}); env["CUDA_VISIBLE_DEVICES"] != want[0] {
			t.Errorf("%s: environment %v", named, env)
		}
		if env := a.environment(dataplane.InstanceSpec{Worker: 2}); env["CUDA_VISIBLE_DEVICES"] != "" {
			t.Errorf("a worker of cores sees %v", env)
		}
	}
}

func TestWithoutAcceleratorsWorkersFallBackOrSayWhy(t *testing.T) {
	t.Setenv("SLUICE_NVIDIA_SMI", filepath.Join(t.TempDir(), "absent"))
	list, err := cards(t, "cuda, cpu", "").Devices(t.Context())
	if err != nil || list[0].Provider != "cpu" || list[0].PassedOver == "" {
		t.Errorf("with a fallback: %+v, %v", list, err)
	}
	_, err = cards(t, "cuda", "").Devices(t.Context())
	if fault.Of(err) != fault.Config || !strings.Contains(err.Error(), "sluice devices") {
		t.Errorf("without a fallback: %v", err)
	}
}

// A profile that is measured on an accelerator has its memory and how it was; one of a worker that fell back has not.
func TestProfilesSayHowAcceleratorsWere(t *testing.T) {
	drivers(t)
	run, err := cards(t, "cuda, cpu", "").Backends(nil)
	if err != nil {
		t.Fatal(err)
	}
	if used, _, _ := run.Local.Provider(0); run.onAccelerator(0) != (used == "cuda") || run.onAccelerator(2) {
		t.Errorf("provider %s, on an accelerator: %v; a worker of cores: %v", used, run.onAccelerator(0),
			run.onAccelerator(2))
	}
	c, f := profiler.Config{Worker: 0}, &profiler.File{Version: profiler.Version, DeviceType: "card"}
	ended := run.has.measured(t.Context(), &c)
	if used, ok := c.Memory(t.Context()); !ok || used != 1<<30 {
		t.Errorf("%d bytes in use, known: %v", used, ok)
	}
	ended(f)
	if len(f.Accelerators) != 1 || f.Accelerators[0].DeviceType != "card" || f.Accelerators[0].MeanMHz != 1755 ||
		!f.Accelerators[0].Hot() || !strings.Contains(c.Host.Accelerator, "H200, driver 580") {
		t.Errorf("seen %+v, host %+v", f.Accelerators, c.Host)
	}
}
