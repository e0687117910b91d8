package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/models/digits"
	"github.com/sluice-serving/sluice/internal/runtime/native"
	"github.com/sluice-serving/sluice/serving/report"
)

func TestDemoRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"demo", "ladder", "--train"}, {"demo", "cats"}, {"demo", "ladder", "pipeline"}, {"demo", "--duration", "0s"},
	} {
		if code, out, errs := sluice(t, args...); code != ExitUsage || errs == "" {
			t.Errorf("%q: %d %s%s", args, code, out, errs)
		}
	}
}

// The result is told in sentences with the numbers that count.
func TestDemoResult(t *testing.T) {
	of := func(name string, violations, accuracy float64) *report.Report {
		r := &report.Report{}
		r.Name, r.Overall = name, report.Summary{
			Offered: 2000, ViolationRatio: violations, EffectiveAccuracy: &accuracy,
		}
		return r
	}
	got := sharedResult(40*time.Second, []*report.Report{
		of("live", 0.004, 0.951), of("simulated", 0.0025, 0.956), of("loki", 0.04, 0.96),
	})
	for _, text := range []string{
		"2000 queries were sent in 40s: 0.40 % of them were late or unanswered", "95.10 % accurate",
		"off by 0.15 and 0.50 points", "loki, the best", "missed 4.00 % at an accuracy of 96.00 %",
	} {
		if !strings.Contains(got, text) {
			t.Errorf("%q is not in %q", text, got)
		}
	}
	quiet, noisy := disturbed(7.6), disturbed(90.2)
	if quiet != "" || !strings.Contains(noisy, "more than 90 ms late") {
		t.Errorf("%q and %q", quiet, noisy)
	}
}

// The demonstration needs nothing but the program and ONNX Runtime: it runs in an empty folder, and again with what it
// has measured.
func TestDemoRunsInAnEmptyFolder(t *testing.T) {
	library, err := native.ONNXRuntime()
	if err != nil {
		t.Skipf("not run without ONNX Runtime: %v", err)
	}
	t.Setenv("SLUICE_ONNXRUNTIME", library.Path)
	t.Chdir(t.TempDir())
	runs := []string{"measuring how fast", "known from an earlier run"}
	if os.Getenv("SLUICE_LONG") != "" {
		runs = append(runs, "measuring how fast") // of a model that is newer than what was measured
	}
	for run, says := range runs {
		if run == 2 {
			later, model := time.Now().Add(time.Hour), digits.Model(filepath.Join("out", "demo", "models"), "fine")
			if err := os.Chtimes(model, later, later); err != nil {
				t.Fatal(err)
			}
		}
		code, out, errs := sluice(t, "demo", "--json", "--duration", "1s")
		if code != ExitOK || !strings.Contains(errs, says) {
			t.Fatalf("run %d: %d, not %q: %s", run, code, says, errs)
		}
		var got struct {
			Result string
			Live   struct{ Report report.Report }
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if !strings.Contains(got.Result, "queries were sent in 1s") {
			t.Errorf("result %q", got.Result)
		}
	}
	for _, name := range []string{"run.png", "run.svg", "run.jsonl", "sluice.yaml", "profile.json"} {
		if st, err := os.Stat(filepath.Join("out", "demo", name)); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if code, out, errs := sluice(t, "config", "check", filepath.Join("out", "demo", "sluice.yaml")); code != ExitOK {
		t.Errorf("%d %s%s", code, out, errs)
	}
}

// Trained models are held against those of the program.
func TestDifferingModelsAreNamed(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, digits.Files()); err != nil {
		t.Fatal(err)
	}
	if differ, err := differing(dir); err != nil || len(differ) > 0 {
		t.Errorf("%q, %v", differ, err)
	}
	if err := os.WriteFile(filepath.Join(dir, digits.SceneModels, "fine.bin"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, digits.Pictures, "ladder.json")); err != nil {
		t.Fatal(err)
	}
	if differ, err := differing(dir); err != nil || len(differ) != 2 || differ[0] != "pictures/ladder.json" ||
		differ[1] != "scenes/fine.bin" {
		t.Errorf("%q, %v", differ, err)
	}
}
