package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExportKubernetes(t *testing.T) {
	file, out := fakeWorld(t), filepath.Join(t.TempDir(), "manifests")
	code, stdout, stderr := sluice(t, "export", "kubernetes", "-f", file, "-o", out)
	if code != ExitShortOf || !strings.Contains(stderr, "workers[0].backend.latency") {
		t.Fatalf("%d %s %s", code, stdout, stderr)
	}
	for name, want := range map[string]string{
		"fleet.yaml": "kind: Fleet", "machinetypes.yaml": "most: 2", "inferenceapps.yaml": "accuracy: \"0.9\"",
	} {
		if text, err := os.ReadFile(filepath.Join(out, name)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %q: %v\n%s", name, want, err, text)
		}
	}
	if code, _, stderr := sluice(t, "export", "kubernetes", "-f", file, "-o", out); code != ExitConfig ||
		!strings.Contains(stderr, "is there already") {
		t.Errorf("a second time: %d %s", code, stderr)
	}
	if code, _, _ := sluice(t, "export", "-f", file); code != ExitUsage {
		t.Errorf("without a target: %d", code)
	}
}

func TestImportKServe(t *testing.T) {
	file := filepath.Join("..", "host", "resources", "testdata", "kserve.yaml")
	out := filepath.Join(t.TempDir(), "sluice.yaml")
	code, stdout, stderr := sluice(t, "import", "kserve", "-f", file, "--to", "config", "--out", out)
	if code != ExitShortOf || !strings.Contains(stdout, "written to "+out) || !strings.Contains(stderr, "canary") {
		t.Fatalf("%d %s %s", code, stdout, stderr)
	}
	code, stdout, _ = sluice(t, "import", "kserve", "-f", file)
	if code != ExitShortOf || !strings.Contains(stdout, "kind: InferenceApp") {
		t.Errorf("%d %s", code, stdout)
	}
	if code, _, _ = sluice(t, "import", "kserve"); code != ExitUsage {
		t.Errorf("without a file: %d", code)
	}
	if code, _, _ = sluice(t, "import", "kserve", "-f", file, "--to", "x"); code != ExitUsage {
		t.Errorf("to something else: %d", code)
	}
	if code, _, _ = sluice(t, "import", "kserve", "-f", file+".missing"); code != ExitConfig {
		t.Errorf("a missing file: %d", code)
	}
}
