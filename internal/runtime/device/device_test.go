package device

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const fakeTool = "testdata/nvidia-smi"

func TestReadsAccelerators(t *testing.T) {
	for _, driver := range []string{"", "old"} {
		t.Setenv("FAKE_SMI", driver)
		m := Read(t.Context(), Tool{Command: fakeTool})
		if m.Note != "" || len(m.Accelerators) != 2 {
			t.Fatalf("driver %q: %d accelerators, note %q", driver, len(m.Accelerators), m.Note)
		}
		a, b := m.Accelerators[0], m.Accelerators[1]
		want := State{
			MemoryUsedBytes: 1 << 30, ClockMHz: 1755, MostClockMHz: 1980, MemoryClockMHz: 3201,
			Throttled: []string{"power limit", "heat (software)"}, Watts: 690.12, LimitWatts: 700, Celsius: 71,
			Utilization: 0.98,
		}
		if !reflect.DeepEqual(a.State, want) || !a.State.Hot() {
			t.Errorf("driver %q: state %+v, want %+v", driver, a.State, want)
		}
		if a.MemoryBytes != 143771<<20 || a.Name != "NVIDIA H200" || a.Capability != "9.0" {
			t.Errorf("driver %q: %+v", driver, a)
		}
		if len(a.Processes) != 1 || a.Processes[0] != (Process{4711, "/usr/bin/python3, worker.py", 516 << 20}) {
			t.Errorf("processes %+v", a.Processes)
		}
		if b.State.Watts != 0 || b.State.Hot() || !slices.Equal(b.State.Throttled, []string{"idle"}) {
			t.Errorf("state of the second %+v", b.State)
		}
	}
}

func TestSaysWhyThereAreNone(t *testing.T) {
	if _, err := (Tool{Command: "testdata/absent"}).Accelerators(t.Context()); !errors.Is(err, ErrNone) ||
		!strings.Contains(err.Error(), EnvTool) {
		t.Errorf("without a driver: %v", err)
	}
	t.Setenv("FAKE_SMI", "broken")
	m := Read(t.Context(), Tool{Command: fakeTool})
	if m.Cores < 1 || len(m.Accelerators) > 0 || !strings.Contains(m.Note, "couldn't communicate") {
		t.Errorf("with a broken driver: %+v", m)
	}
	t.Setenv("FAKE_SMI", "none")
	if m := Read(t.Context(), Tool{Command: fakeTool}); !strings.Contains(m.Note, "lists no accelerator") {
		t.Errorf("without accelerators: %+v", m)
	}
}

func TestGivesUpOnAHangingTool(t *testing.T) {
	t.Setenv("FAKE_SMI", "hangs")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Tool{Command: fakeTool}).Accelerators(ctx); err == nil {
		t.Error("no error from a tool that hangs")
	}
}

func TestUnknownThrottlesAreNumbers(t *testing.T) {
	if got := throttled(0x8004); !slices.Equal(got, []string{"power limit", "0x8000"}) {
		t.Errorf("names %v", got)
	}
}

func TestVisible(t *testing.T) {
	m := &Machine{Accelerators: []Accelerator{{Index: 0}, {Index: 1}}}
	for listed, want := range map[string][]string{
		"": {"0", "1"}, "1": {"1"}, "GPU-7, 0": {"GPU-7", "0"}, "1,-1,0": {"1"}, "-1": nil,
	} {
		if got := Visible(func(string) string { return listed }, m); !slices.Equal(got, want) {
			t.Errorf("%s=%q: %v, want %v", EnvVisible, listed, got, want)
		}
	}
}

func TestPoolSharesOut(t *testing.T) {
	p, err := NewPool([]string{"2", "5", "7"}, []Wanted{
		{Name: "cpu"}, {Name: "a", Count: 2}, {Name: "b", Count: 1, IDs: []string{"5"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := p.Of(0, 0, 0, 7); s.Ordinal != -1 || s.Environment()[EnvVisible] != "" {
		t.Errorf("a worker without accelerators: %+v", s)
	}
	if a, b := p.Of(1, 0, 0, 1), p.Of(1, 0, 0, 2); a.ID == b.ID || a.ID+b.ID != "72" || a.Ordinal != 2 {
		t.Errorf("instances of one worker have %+v and %+v", a, b)
	}
	for at, id := range []string{"2", "7"} {
		if s := p.Of(1, at, 40, 1); s.ID != id {
			t.Errorf("a part of accelerator %d: %+v", at, s)
		}
	}
	want := map[string]string{
		"CUDA_VISIBLE_DEVICES": "5", "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "30",
	}
	if env := p.Of(2, 0, 30, 1).Environment(); !maps.Equal(env, want) {
		t.Errorf("environment %v, want %v", env, want)
	}
}

func TestPoolRefuses(t *testing.T) {
	for _, w := range [][]Wanted{
		{{Name: "a", Count: 2}},
		{{Name: "a", Count: 1, IDs: []string{"9"}}},
		{{Name: "a", Count: 1, IDs: []string{"0"}}, {Name: "b", Count: 1}},
	} {
		if _, err := NewPool([]string{"0"}, w); err == nil || !strings.Contains(err.Error(), "sluice devices") {
			t.Errorf("%+v: error %v", w, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("0, GPU-1, NVIDIA H200, 580, 143771, 0\n", "GPU-1, 4711, a,b, 516\n")
	f.Add("No devices were found\n", "[N/A]")
	f.Fuzz(func(t *testing.T, accelerators, processes string) {
		found, err := parseAccelerators(accelerators, baseFields)
		if err != nil {
			return
		}
		addProcesses(found, processes)
		for _, a := range found {
			if a.MemoryBytes < 0 || a.State.MemoryUsedBytes < 0 || a.Index < 0 {
				t.Errorf("accelerator %+v of %q", a, accelerators)
			}
		}
	})
}
