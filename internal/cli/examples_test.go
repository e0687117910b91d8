package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// The examples that need no models run in the simulator as they are.
func TestExamples(t *testing.T) {
	for _, c := range [][]string{
		{"ladder.yaml", "digits"},
		{"ladder.yaml", "scenes"},
	} {
		code, out, errs := sluice(t, "simulate", "-f", filepath.Join("..", "..", "examples", c[0]), "--app", c[1],
			"--request-rate-range", "40", "--duration", "5s")
		if code != ExitOK || !strings.Contains(out, "SLO violations") {
			t.Errorf("%s, app %s: %d %s%s", c[0], c[1], code, out, errs)
		}
	}
}

// The example of mixed machines is a valid configuration over a model, and what it plans with a profile costs no more
// than it says.
func TestMixedExample(t *testing.T) {
	dir := t.TempDir()
	file, measured := filepath.Join(dir, "mixed.yaml"), filepath.Join(dir, "profile.json")
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "mixed.yaml"))
	if err == nil {
		err = os.WriteFile(file, text, 0o644)
	}
	if err == nil {
		err = onnxmodel.Identity(onnxmodel.Float32, onnxmodel.Symbolic, 4).Write(filepath.Join(dir, "models", "ranking",
			"1", "model.onnx"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if code, out, errs := sluice(t, "config", "check", file); code != ExitOK {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	var points []string
	for device, of := range map[string]func(int) int{"local": func(n int) int {
		return 2000 + 100*n
	}, "remote": func(n int) int { return 1000 + 1000*n }} {
		for n := 1; n <= 256; n *= 2 {
			points = append(points, fmt.Sprintf(
				`{"variant": "ranking", "device_type": %q, "batch": %d, "concurrency": 1, "samples": 9, "mean_us": `+
					`%[3]d, "stddev_us": 9, "p50_us": %[3]d, "p90_us": %[3]d, "p95_us": %[3]d, "p99_us": %[3]d}`,
				device, n, of(n)))
		}
	}
	if err := os.WriteFile(measured,
		fmt.Appendf(nil, `{"version": 1, "created": "2026-01-01T00:00:00Z", "points": [%s]}`,
			strings.Join(points, ",")), 0o644); err != nil {
		t.Fatal(err)
	}
	r := askPlan(t, ExitOK, "-f", file, "--profile", measured)
	used := make(map[string]int)
	for _, i := range r.Plans[0].Instances {
		used[i.DeviceType]++
	}
	if used["local"] != 1 || used["remote"] != 1 {
		t.Errorf("0.6 $/h rent %v, want one machine of each type", used)
	}
	code, out, errs := sluice(t, "simulate", "-f", file, "--profile", measured, "--request-rate-range", "30",
		"--duration", "20s", "--json")
	var reports []struct {
		Overall struct {
			Offered, Served int64
			Violation       float64 `json:"violation_ratio"`
		}
	}
	if err := json.Unmarshal([]byte(out), &reports); err != nil || code != ExitOK || len(reports) != 1 ||
		reports[0].Overall.Served < 300 || reports[0].Overall.Violation > 0.05 {
		t.Errorf("%d %v %s%s", code, err, out, errs)
	}
}

// The example of functions is a valid configuration over a model, and in the simulator its app is started by its first
// query, on parts whose latencies the profile lists by their names.
func TestServerlessExample(t *testing.T) {
	dir := t.TempDir()
	file, measured := filepath.Join(dir, "serverless.yaml"), filepath.Join(dir, "profile.json")
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "serverless.yaml"))
	if err == nil {
		err = os.WriteFile(file, text, 0o644)
	}
	if err == nil {
		err = onnxmodel.Identity(onnxmodel.Float32, onnxmodel.Symbolic,
			4).Write(filepath.Join(dir, "models", "classify", "1", "model.onnx"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if code, out, errs := sluice(t, "config", "check", file); code != ExitOK {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	var points, loads []string
	for device, cores := range map[string]int{"local": 4, "local-1": 1, "local-2": 2, "local-4": 4} {
		for n := 1; n <= 8; n *= 2 {
			points = append(points, fmt.Sprintf(
				`{"variant": "classify", "device_type": %q, "batch": %d, "concurrency": 1, "samples": 9, "mean_us": `+
					`%[3]d, "stddev_us": 9, "p50_us": %[3]d, "p90_us": %[3]d, "p95_us": %[3]d, "p99_us": %[3]d}`,
				device, n, 2000+20_000*n/cores))
		}
		loads = append(loads, fmt.Sprintf(`{"variant": "classify", "device_type": %q, "load_ms": 500}`, device))
	}
	if err := os.WriteFile(measured,
		fmt.Appendf(nil, `{"version": 1, "created": "2026-01-01T00:00:00Z", "points": [%s], "loads": [%s]}`,
			strings.Join(points, ","), strings.Join(loads, ",")), 0o644); err != nil {
		t.Fatal(err)
	}
	// A part of one thread carries fewer than 50 queries/s in batches of one.
	r := askPlan(t, ExitOK, "-f", file, "--profile", measured, "--demand", "classify=120")
	threads := 0
	for _, i := range r.Plans[0].Instances {
		n := map[string]int{"local-1": 1, "local-2": 2, "local-4": 4}[i.DeviceType]
		if threads += n; n == 0 {
			t.Errorf("an instance on %q, which is no part", i.DeviceType)
		}
	}
	if threads == 0 || threads > 4 {
		t.Errorf("parts of %d threads on a machine of 4", threads)
	}
	code, out, errs := sluice(t, "simulate", "-f", file, "--profile", measured, "--request-rate-range", "20",
		"--duration", "60s", "--json")
	var reports []struct {
		Overall struct {
			Offered, Served int64
			Violation       float64 `json:"violation_ratio"`
		}
	}
	if err := json.Unmarshal([]byte(out), &reports); err != nil || code != ExitOK || len(reports) != 1 {
		t.Fatalf("%d %v %s%s", code, err, out, errs)
	}
	if o := reports[0].Overall; o.Served != o.Offered || o.Served < 900 || o.Violation == 0 || o.Violation > 0.05 {
		t.Errorf("%d of %d queries were served, %.3f late: want all of them, those that came during the start late",
			o.Served, o.Offered, o.Violation)
	}
}
