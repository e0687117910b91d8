package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A system that learns runs on the virtual clock, from nothing and from a profile, and its journals replay.
func TestSimulateLearning(t *testing.T) {
	dir := t.TempDir()
	file, recorded := filepath.Join(dir, "sluice.yaml"), filepath.Join(dir, "run.journal")
	world := `
version: 1
device_types: [{name: accelerator, price_per_hour: 0.5}, {name: processor, price_per_hour: 0.1}]
workers:
  - {name: a, device_type: accelerator, backend: {kind: fake, latency: 40ms, latency_per_item: 400us}}
  - {name: p, device_type: processor, count: 2, backend: {kind: fake, latency: 12ms, latency_per_item: 4ms}}
system: {router: earliestfinish, batcher: single, scaler: mixshift, options: {learn: true}}
apps:
  - name: app
    slo: {latency: 250ms}
    inputs: [{name: x, datatype: FP32, shape: [-1, 1]}]
    variants: [{name: v, max_batch: 64}]
`
	if err := os.WriteFile(file, []byte(world), 0o644); err != nil {
		t.Fatal(err)
	}
	knows := func(args ...string) bool {
		t.Helper()
		args = append([]string{
			"simulate", "-f", file, "--request-rate-range", "30", "--batch-size", "8", "--duration", "20s", "--json",
			"--journal", recorded,
		}, args...)
		code, out, errs := sluice(t, args...)
		if code != ExitOK {
			t.Fatal(errs)
		}
		var reports []struct {
			Overall struct {
				Offered, Served int64
				Violation       float64 `json:"violation_ratio"`
			}
		}
		if err := json.Unmarshal([]byte(out), &reports); err != nil || len(reports) != 1 ||
			reports[0].Overall.Offered < 400 || reports[0].Overall.Violation > 0.02 {
			t.Errorf("%v: %s", err, out)
		}
		if code, out, errs := sluice(t, "replay", recorded); code != ExitOK || !strings.Contains(out, "all the same") {
			t.Errorf("replay: %d %s%s", code, out, errs)
		}
		text, err := os.ReadFile(recorded)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), `"Learn":true`) ||
			!strings.Contains(string(text), "brings 8 items in the mean of") {
			t.Error("the journal does not say that latency was learned, or for which sizes plans were asked for")
		}
		header, _, _ := strings.Cut(string(text), "\n")
		return strings.Contains(header, `"P50"`)
	}
	if knows() {
		t.Error("without a profile latencies were known from the start")
	}
	measured := filepath.Join(dir, "profile.json")
	var points []string
	for device, of := range map[string]func(int) int{"accelerator": func(n int) int {
		return 40000 + 400*n
	}, "processor": func(n int) int { return 12000 + 4000*n }} {
		for _, n := range []int{1, 8, 64} {
			points = append(points, fmt.Sprintf(
				`{"variant": "v", "device_type": %q, "batch": %d, "concurrency": 1, "samples": 9, "mean_us": %[3]d, `+
					`"stddev_us": 9, "p50_us": %[3]d, "p90_us": %[3]d, "p95_us": %[3]d, "p99_us": %[3]d}`, device, n,
				of(n)))
		}
	}
	text := fmt.Sprintf(`{"version": 1, "created": "2026-01-01T00:00:00Z", "points": [%s]}`, strings.Join(points, ","))
	if err := os.WriteFile(measured, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if !knows("--profile", measured) {
		t.Error("the profile is not in the journal")
	}
}
