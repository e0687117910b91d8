package deploy_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write kustomize/sluice.yaml anew")

const generated = "# Made from the chart by `go test . -run Kustomize -update` in operator/deploy.\n"

// What kustomize starts from is what the chart installs.
func TestKustomizeIsTheChart(t *testing.T) {
	objects, err := render("")
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	want.WriteString(generated)
	for i, o := range objects {
		if i > 0 {
			want.WriteString("---\n")
		}
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		want.Write(bytes.ReplaceAll(text, []byte("app.kubernetes.io/managed-by: Helm"),
			[]byte("app.kubernetes.io/managed-by: kustomize")))
	}
	const path = "kustomize/sluice.yaml"
	if *update {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is out of date: run `go test . -run Kustomize -update` in operator/deploy", path)
	}
}
