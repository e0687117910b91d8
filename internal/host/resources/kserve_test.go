package resources_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/resources"
)

func TestImportKServe(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "kserve.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := resources.ImportKServe(text, resources.Importing{Objective: 80 * time.Millisecond, Fleet: "edge"})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "kserve.apps.yaml", shown(t, l))
	made, l, err := resources.KServeConfig(text, resources.Importing{}, 4)
	if err != nil {
		t.Fatal(err)
	}
	l.Resources = nil
	golden(t, "kserve.sluice.yaml", string(made)+shown(t, l))
	if f, err := config.Parse(made, "sluice.yaml"); err != nil || len(f.Apps) != 1 || f.Apps[0].Demand != 50 {
		t.Errorf("the sluice.yaml is %+v, %v", f, err)
	}
}

// A list as kubectl prints it gives the same as its documents.
func TestImportKServeReadsLists(t *testing.T) {
	one := `{apiVersion: serving.kserve.io/v1beta1, kind: InferenceService, metadata: {name: %, uid: u},
 spec: {predictor: {minReplicas: 0, onnx: {storageUri: "oci://r/i@sha256:00"}}}, status: {url: x}}`
	for _, text := range []string{
		strings.ReplaceAll(one, "%", "a") + "\n---\n" + strings.ReplaceAll(one, "%", "b"),
		"{apiVersion: v1, kind: List, items: [" + strings.ReplaceAll(one, "%", "a") + ", " +
			strings.ReplaceAll(one, "%", "b") + "]}",
	} {
		l, err := resources.ImportKServe([]byte(text), resources.Importing{})
		if err != nil {
			t.Fatal(err)
		}
		if len(l.Resources) != 2 || l.Resources[1].Metadata.Name != "b" || len(l.Left) != 0 {
			t.Errorf("%s", shown(t, l))
		}
	}
}

func TestImportKServeRefuses(t *testing.T) {
	service := func(predictor string) string {
		return "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\nmetadata: {name: a}\nspec: " +
			"{predictor: " +
			predictor + "}"
	}
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "there is no InferenceService in it"},
		{"no YAML", "a: [", "not valid YAML"},
		{"no mapping", "- a", "line 1: not a resource"},
		{"another version", "apiVersion: serving.kserve.io/v1alpha2\nkind: InferenceService", "v1beta1 is read"},
		{"no name", "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService", "metadata.name is \"\""},
		{"no predictor", "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\nmetadata: {name: a}",
			"has no spec.predictor"},
		{"no number", service("{minReplicas: many}"), `spec.predictor.minReplicas is "many"`},
		{"negative", service("{maxReplicas: -1}"), `spec.predictor.maxReplicas is "-1"`},
		{"most below least", service("{minReplicas: 3, maxReplicas: 2}"), "maxReplicas is 2, below minReplicas"},
		{"twice", service("{}") + "\n---\n" + service("{}"), `InferenceService "a" is there twice`},
		{"too large", strings.Repeat("#", 5<<20), "larger than the limit"},
		{"aliases", "x: &a [" + strings.Repeat("1,", 200) + "1]\ny: &b [" + strings.Repeat("*a,", 200) + "*a]\n" +
			service("{z: [*b, *b]}"), "aliases expanded"},
	} {
		_, err := resources.ImportKServe([]byte(c.text), resources.Importing{})
		if fault.Of(err) != fault.Config || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	for _, c := range []struct{ predictor, want string }{
		{"{model: {modelFormat: {name: onnx}, storageUri: gs://b/m}}", "not from gs://b/m"},
		{"{model: {modelFormat: {name: onnx}, storageUri: https://h/m}}", "needs its digest"},
		{"{model: {modelFormat: {name: onnx}, storageUri: oci://r/i}}", "named by its digest"},
		{"{model: {modelFormat: {name: onnx}, storage: {key: k}}}", "names no storageUri"},
		{"{containers: [{image: i}]}", "names no storageUri"},
	} {
		l, err := resources.ImportKServe([]byte(service(c.predictor)), resources.Importing{})
		if err != nil {
			t.Fatal(err)
		}
		if len(l.Resources) != 0 || !strings.Contains(shown(t, l), c.want) {
			t.Errorf("%s: want %q: %s", c.predictor, c.want, shown(t, l))
		}
	}
}

// Whatever the text is, what is written can be read again, and no service is written twice.
func FuzzImportKServe(f *testing.F) {
	text, err := os.ReadFile(filepath.Join("testdata", "kserve.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("{kind: InferenceService, apiVersion: serving.kserve.io/v1beta1, metadata: {name: a}, spec: " +
		"{predictor: " +
		"{onnx: {storageUri: 'pvc://\\u0000'}}}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := resources.ImportKServe(text, resources.Importing{})
		if err == nil {
			var b bytes.Buffer
			if err := l.Write(&b, ""); err != nil {
				t.Fatal(err)
			}
			seen := map[resources.Meta]bool{}
			for d := yaml.NewDecoder(&b); ; {
				var r resources.Resource
				if err := d.Decode(&r); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%v in\n%s", err, b.String())
				}
				if seen[r.Metadata] {
					t.Fatalf("%v is there twice", r.Metadata)
				}
				seen[r.Metadata] = true
			}
		}
		if made, _, err := resources.KServeConfig(text, resources.Importing{}, 1); err == nil && made != nil {
			if _, err := config.Parse(made, "sluice.yaml"); err != nil {
				t.Fatalf("%v in\n%s", err, made)
			}
		}
	})
}
