package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/serving/report"
)

// targetWorld is a configuration of an app with an accuracy target, on two workers of which one carries it with the
// small variant alone.
func targetWorld(t *testing.T, target string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"profile.json": `{"version": 1, "points": [
{"variant": "big", "device_type": "d", "batch": 1, "concurrency": 1, "samples": 9, "mean_us": 20000, "p50_us": 20000,
 "p90_us": 20000, "p95_us": 20000, "p99_us": 20000},
{"variant": "small", "device_type": "d", "batch": 1, "concurrency": 1, "samples": 9, "mean_us": 10000, "p50_us": 10000,
 "p90_us": 10000, "p95_us": 10000, "p99_us": 10000}], "loads": []}`,
		"sluice.yaml": `version: 1
device_types: [{name: d, price_per_hour: 1}]
workers: [{name: w, device_type: d, count: 2, backend: {kind: fake}}]
profiles: [profile.json]
apps:
  - name: app
    slo: {latency: 100ms}
    accuracy_target: ` + target + `
    demand: 60
    inputs: [{name: x, datatype: FP32, shape: [-1, 4]}]
    variants: [{name: big, accuracy: 0.9, max_batch: 1}, {name: small, accuracy: 0.7, max_batch: 1}]
`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(folder, "sluice.yaml")
}

// Plans and simulated runs say of each target whether it is kept, as text and as JSON. infaas-target runs the fastest
// variant that reaches the target, so it keeps it; jellyfish+ keeps what the load allows.
func TestTargetsAreShown(t *testing.T) {
	for _, c := range []struct {
		system, target, plan, run string
		missed                    float64
	}{
		{"infaas-target", "0.8", "80.00 % for app app, reached", "accuracy target of 80.00 % for app app, kept", 0},
		{"infaas-target", "0.7", "70.00 % for app app, reached", "accuracy target of 70.00 % for app app, kept", 0},
		{
			"clipper-ht", "0.8", "80.00 % for app app, missed: 70.00 %",
			"accuracy target of 80.00 % for app app, missed: 70.00 %", 0.1,
		},
	} {
		file := targetWorld(t, c.target)
		if code, out, errs := sluice(t, "plan", "-f", file, "--system", c.system); !strings.Contains(out, c.plan) {
			t.Errorf("plan of %s: %d, no %q in %s%s", c.system, code, c.plan, out, errs)
		}
		args := []string{"simulate", "-f", file, "--system", c.system, "--rates", "0:60,5:60"}
		if code, out, errs := sluice(t, args...); code != ExitOK || !strings.Contains(out, c.run) {
			t.Errorf("simulation of %s: %d, no %q in %s%s", c.system, code, c.run, out, errs)
		}
		_, out, _ := sluice(t, append(args, "--json")...)
		var r []report.Report
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		if a := &r[0].Apps[0]; a.Target == nil || a.Missed == nil || !near(*a.Missed, c.missed) {
			t.Errorf("%s: %+v", c.system, a)
		}
		v := askPlan(t, ExitOK, "-f", file, "--system", c.system)
		if a := &v.Plans[0].Apps[0]; a.Target == nil || a.Missed == nil || !near(*a.Missed, c.missed) {
			t.Errorf("plan of %s: %+v", c.system, a)
		}
	}
}
