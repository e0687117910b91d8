package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/runtime/native"
)

// Parts are measured with their threads where a machine has room for them, and what cannot be measured is said.
func TestProfileParts(t *testing.T) {
	if _, err := native.ONNXRuntime(); err != nil {
		t.Skipf("not run without ONNX Runtime: %v", err)
	}
	file := modelWorld(t)
	text, err := os.ReadFile(file)
	if err == nil {
		changed := strings.Replace(string(text), "[{name: cpu, price_per_hour: 1}]", `
  - {name: cpu, cores: 2, accelerators: 1, memory: 1GiB}
  - {name: one, part: true}
  - {name: two, part: true, cores: 2}
  - {name: tenth, part: true, percent: 10}
  - {name: three, part: true, cores: 3}
  - {name: tiny, part: true, memory: 1}`, 1)
		err = os.WriteFile(file, []byte(strings.Replace(changed, "apps:", "system: infless\napps:", 1)), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(filepath.Dir(file), "profile.json")
	code, _, errs := sluice(t, "profile", "-f", file, "-o", out, "--max-time", "50ms")
	if code != ExitOK {
		t.Fatalf("%d %s", code, errs)
	}
	for _, want := range []string{
		`part "tenth" is not measured: 10 % of an accelerator`, `part "three" is not measured: it fits on no worker`,
		`part "tiny" is not measured: its memory holds no variant`,
	} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q is not said: %s", want, errs)
		}
	}
	f, err := profiler.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]int)
	for _, p := range f.Points {
		rows[p.DeviceType]++
	}
	if len(rows) != 3 || rows["cpu"] != 3 || rows["one"] != 3 || rows["two"] != 3 || len(f.Loads) != 3 {
		t.Errorf("points by device type %v and %d loads, want three of each of cpu, one and two", rows, len(f.Loads))
	}
	r := askPlan(t, ExitOK, "-f", file, "--profile", out, "--demand", "app=10")
	for _, i := range r.Plans[0].Instances {
		if i.DeviceType != "one" && i.DeviceType != "two" {
			t.Errorf("an instance on %q", i.DeviceType)
		}
	}
	if len(r.Plans[0].Instances) == 0 {
		t.Error("the plan has no instance")
	}

	// Predictions from operators have the threads of the parts as well.
	predicted := filepath.Join(filepath.Dir(file), "predicted.json")
	if code, _, errs := sluice(t, "profile", "--operators", "-f", file, "--store",
		filepath.Join(filepath.Dir(file), "operators.json"), "-o", predicted); code != ExitOK {
		t.Fatalf("%d %s", code, errs)
	}
	if f, err = profiler.ReadFile(predicted); err != nil {
		t.Fatal(err)
	}
	clear(rows)
	for _, p := range f.Points {
		rows[p.DeviceType]++
	}
	if len(rows) != 3 || rows["one"] != 3 || rows["two"] != 3 {
		t.Errorf("predictions by device type: %v", rows)
	}
}
