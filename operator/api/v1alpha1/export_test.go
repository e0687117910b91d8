package v1alpha1_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/internal/cluster"
)

// TestWhatIsExportedIsTaken creates all that `sluice export kubernetes` and `sluice import kserve` write in their own
// tests. The API server refuses fields that it does not know, and must keep every field with its meaning.
func TestWhatIsExportedIsTaken(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	files, err := filepath.Glob("../../../internal/host/resources/testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "apiVersion: sluice.dev/") {
			continue // what was imported
		}
		ns := c.Namespace(t)
		strict := client.WithFieldValidation(c.Client, "Strict")
		for _, doc := range strings.Split(string(text), "\n---\n") {
			var o unstructured.Unstructured
			if err := yaml.Unmarshal([]byte(doc), &o.Object); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			o.SetNamespace(ns)
			want := typed(t, &o)
			if err := strict.Create(t.Context(), &o); err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			kinds[o.GetKind()]++
			got := typed(t, &o)
			if same(t, want, got) {
				continue
			}
			t.Errorf("%s: %s %s: want %s, got %s", file, o.GetKind(), o.GetName(), text, spec(t, got))
		}
	}
	for _, kind := range []string{"Fleet", "MachineType", "InferenceApp", "Profile"} {
		if kinds[kind] == 0 {
			t.Errorf("no %s was created", kind)
		}
	}
}

// typed decodes a resource into its Go type.
func typed(t *testing.T, o *unstructured.Unstructured) client.Object {
	t.Helper()
	out, ok := map[string]client.Object{"Fleet": &v1alpha1.Fleet{}, "MachineType": &v1alpha1.MachineType{},
		"InferenceApp": &v1alpha1.InferenceApp{}, "Profile": &v1alpha1.Profile{}}[o.GetKind()]
	if !ok {
		t.Fatalf("a resource of kind %q", o.GetKind())
	}
	text, err := json.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, out); err != nil {
		t.Fatalf("%s: %v", o.GetName(), err)
	}
	return out
}

// same tells whether got says all that want says: it may say more, by default.
func same(t *testing.T, want, got client.Object) bool {
	t.Helper()
	var w, g any
	if json.Unmarshal(spec(t, want), &w) != nil || json.Unmarshal(spec(t, got), &g) != nil {
		t.Fatal("not JSON")
	}
	return within(w, g)
}

func within(w, g any) bool {
	switch w := w.(type) {
	case map[string]any:
		in, ok := g.(map[string]any)
		for k, v := range w {
			ok = ok && within(v, in[k])
		}
		return ok
	case []any:
		in, ok := g.([]any)
		ok = ok && len(in) == len(w)
		for i := range w {
			ok = ok && within(w[i], in[i])
		}
		return ok
	}
	return w == g
}

func spec(t *testing.T, o client.Object) []byte {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var whole struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	return whole.Spec
}
