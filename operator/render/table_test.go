package render

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
)

// Every entry of the table of settings is a field of the resource that stands for its struct.
func TestTheTableNamesFields(t *testing.T) {
	count := 0
	for _, c := range []struct {
		settings, resource any
		not                string // entries that another resource has
	}{
		{config.App{}, v1alpha1.InferenceAppSpec{}, ""}, {config.SLO{}, v1alpha1.Objective{}, ""},
		{config.Variant{}, v1alpha1.Variant{}, ""}, {config.Stage{}, v1alpha1.Stage{}, ""},
		{config.Edge{}, v1alpha1.Edge{}, ""}, {config.Tensor{}, v1alpha1.Tensor{}, ""},
		{config.System{}, v1alpha1.FleetSpec{}, ""}, {config.File{}, v1alpha1.FleetSpec{}, ""},
		{config.Tenant{}, v1alpha1.Tenant{}, ""}, {config.Access{}, v1alpha1.FleetAccess{}, ""},
		{config.Certificate{}, v1alpha1.FleetCertificate{}, ""}, {config.JWT{}, v1alpha1.FleetJWT{}, ""},
		{config.DeviceType{}, v1alpha1.MachineTypeSpec{}, "name percent"},
		{config.DeviceType{}, v1alpha1.Part{}, "pricePerHour tenure most"},
	} {
		fields := map[string]bool{}
		for f := range reflect.TypeOf(c.resource).Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			fields[name] = true
		}
		for f := range reflect.TypeOf(c.settings).Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("resource"), ",")
			if name == "" || name == "-" || strings.Contains(c.not, name) {
				continue
			}
			if count++; !fields[name] {
				t.Errorf("%T.%s is field %q of %T, which has none", c.settings, f.Name, name, c.resource)
			}
		}
	}
	if count < 50 {
		t.Errorf("only %d entries were looked at", count)
	}
}

// What `sluice export kubernetes` writes of an app is read back as the same settings.
func TestWhatIsExportedIsRendered(t *testing.T) {
	text, err := os.ReadFile("../../internal/host/resources/testdata/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var got []config.App
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		doc, _, _ = strings.Cut(doc, "\n#")
		if a := new(v1alpha1.InferenceApp); strings.Contains(doc, "kind: InferenceApp\n") {
			if err := yaml.UnmarshalStrict([]byte(doc), a); err != nil {
				t.Fatal(err)
			}
			got = append(got, app(a))
		}
	}
	shape := func(name string, n int64) []config.Tensor {
		return []config.Tensor{{Name: name, DataType: "FP32", Shape: []int64{-1, n}}}
	}
	want := []config.App{
		{
			Name: "faces", SLO: config.SLO{Latency: 50e6, Percentile: 99.9}, Weight: 2, Late: "serve-late",
			AccuracyFloor: 0.5, AccuracyTarget: 0.75, Demand: 12.5, Inputs: shape("x", 4), Outputs: shape("y", 2),
			Variants: []config.Variant{
				{Name: "faces.big", Accuracy: 0.9, MaxBatch: 16, Memory: 100 << 20},
				{Name: "faces.small", Accuracy: 0.7, MaxBatch: 32},
			},
		},
		{
			Name: "graph", SLO: config.SLO{Latency: 200e6, Percentile: 99}, Late: "drop", Weight: 1,
			Inputs: shape("image", 8),
			Stages: []config.Stage{
				{
					Name: "find", Variants: []config.Variant{{Name: "graph.find.finder", Accuracy: 1}},
					Outputs: map[string]string{"out": "boxes"},
					Next:    []config.Edge{{To: "name", FanOut: 2.5, Rows: "boxes"}},
				},
				{
					Name: "name", Variants: []config.Variant{{Name: "graph.name.namer", Accuracy: 1}},
					Inputs: map[string]string{"in": "boxes"},
				},
			},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
