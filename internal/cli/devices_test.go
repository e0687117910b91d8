package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

func TestDevices(t *testing.T) {
	tool, err := filepath.Abs("../runtime/device/testdata/nvidia-smi")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SLUICE_NVIDIA_SMI", tool)
	code, out, complaint := sluice(t, "devices", "--require", "2")
	if code != ExitOK {
		t.Fatalf("exit %d: %s", code, complaint)
	}
	for _, want := range []string{"NVIDIA H200", "1755", "power limit, heat (software)", "690", "4711", "worker.py"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if code, _, complaint := sluice(t, "devices", "--require", "3"); code != ExitMissing ||
		!strings.Contains(complaint, "3 accelerators are required, 2 are there") {
		t.Errorf("exit %d: %s", code, complaint)
	}
	_, out, _ = sluice(t, "devices", "--json")
	var got struct {
		Cores        int `json:"cores"`
		Accelerators []struct {
			Name  string `json:"name"`
			State struct {
				Throttled []string `json:"throttled"`
			} `json:"state"`
		} `json:"accelerators"`
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Cores < 1 || len(got.Accelerators) != 2 ||
		len(got.Accelerators[0].State.Throttled) != 2 {
		t.Errorf("%v: %+v of\n%s", err, got, out)
	}
}

func TestDevicesSaysWhyThereAreNone(t *testing.T) {
	t.Setenv("SLUICE_NVIDIA_SMI", filepath.Join(t.TempDir(), "absent"))
	code, out, _ := sluice(t, "devices")
	if code != ExitOK || !strings.Contains(out, "No accelerators: ") || !strings.Contains(out, "cores") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if code, _, _ := sluice(t, "devices", "--require", "1"); code != ExitMissing {
		t.Errorf("exit %d where an accelerator is required", code)
	}
}
