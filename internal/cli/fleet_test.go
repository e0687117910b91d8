package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// kubectl stands in for the real one: it keeps what is applied, and answers as a cluster does. The operator's tests
// have a real cluster.
const kubectl = `#!/bin/sh
cd "$(dirname "$0")"
echo "$@" >> calls
case "$1 $2" in
"apply -f") cat > applied ;;
"get inferenceapps.sluice.dev")
  app='{"metadata":{"name":"classify","generation":2},"spec":{"fleet":"default","objective":{"latency":"100ms",
    "percentile":99},"variants":[{"model":{"sha256":"0123456789abcdef"}}]},"status":{"rate":"3.5","violations":"0.1%",
    "machines":1,"instances":1,"conditions":[{"type":"Accepted","status":"True","observedGeneration":2}]}}'
  if [ "$3" = -l ]; then echo "{\"items\":[$app]}"; else echo "$app"; fi ;;
"get events")
  echo '{"items":[{"lastTimestamp":"2026-01-02T03:04:05Z","reason":"Planned","message":"carried","count":2}]}' ;;
"delete inferenceapps.sluice.dev") [ "$3" = classify ] || { echo "not found" >&2; exit 1; } ;;
esac
`

func TestFunctionsOfAFleet(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(kubectl), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	g := onnxmodel.NewGraph("adds").Input("x", onnxmodel.Float32, onnxmodel.Symbolic, 2).
		Node("Identity", []string{"x"}, []string{"y"}).Output("y", onnxmodel.Float32, onnxmodel.Symbolic, 2)
	if err := g.Write(filepath.Join(dir, "classify.onnx")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "fn.yaml")
	text := "name: classify\nmodel: classify.onnx\nslo: {latency: 100ms}\nmax_batch: 4\nmin_instances: 1\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, errs := sluice(t, "deploy", "-f", file, "--fleet", "default"); status != ExitUsage ||
		!strings.Contains(errs, "--uri") {
		t.Errorf("without a place: %d %s", status, errs)
	}
	status, out, errs := sluice(t, "deploy", "-f", file, "--fleet", "default", "--namespace", "team", "--uri",
		"pvc://models/classify.onnx")
	if status != 0 || !strings.Contains(out, "classify: version 2 is ready") {
		t.Fatalf("deploy: %d %s%s", status, out, errs)
	}
	applied, err := os.ReadFile(filepath.Join(dir, "applied"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"kind: InferenceApp", "name: classify", "namespace: team", "sluice.dev/function: \"true\"", "fleet: default",
		"latency: 100ms", "minInstances: 1", "maxBatch: 4", "uri: pvc://models/classify.onnx", "sha256: ",
		"dataType: FP32",
	} {
		if !strings.Contains(string(applied), want) {
			t.Errorf("%q is not in\n%s", want, applied)
		}
	}
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"list"}, "p99 100ms"}, {[]string{"logs", "classify"}, "carried (2 times)"},
		{[]string{"delete", "classify"}, "classify: deleted"},
	} {
		if status, out, errs := sluice(t, append(x.args, "--fleet", "default")...); status != 0 ||
			!strings.Contains(out, x.want) {
			t.Errorf("%v: %d %s%s", x.args, status, out, errs)
		}
	}
	if status, out, _ := sluice(t, "list", "--fleet", "other"); status != 0 || !strings.Contains(out, "no function") {
		t.Errorf("another fleet: %d %s", status, out)
	}
	if status, _, errs := sluice(t, "delete", "none", "--fleet", "default"); status == 0 ||
		!strings.Contains(errs, "not found") {
		t.Errorf("%d %s", status, errs)
	}
}
