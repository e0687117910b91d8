package measuring

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/measure/samples"
	"github.com/sluice-serving/sluice/tensor"
)

// echoes has two variants that give back what they get: the class is the place of the input's largest number.
const echoes = `
version: 1
device_types: [{name: any}]
workers: [{name: w, backend: {kind: fake, latency: 10us}}]
apps:
  - name: echo
    slo: {latency: 1s}
    inputs: [{name: x, datatype: FP32, shape: [-1, 3]}]
    variants: [{name: small%s, max_batch: 4}, {name: large%s, max_batch: 4}]
`

func openEchoes(t *testing.T, small, large string) *host.Opened {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, echoes, small, large), 0o644); err != nil {
		t.Fatal(err)
	}
	o, err := host.Open(file, host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func sampleFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAccuracyOnLabelledSamples(t *testing.T) {
	recorded, err := samples.EncodeRequest([]tensor.Tensor{{Name: "x", DType: tensor.FP32, Shape: []int64{1, 3},
		Data: make([]byte, 12)}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files map[string]string
		score string
		want  float64
	}{
		"folders": {map[string]string{"0/a.json": "[1, 0, 0]", "2/b.json": "[[0, 0, 7]]", "1/c.json": "[9, 1, 0]",
			"1/d.json": "[0, 1, 0]", "0/e.request": string(recorded)}, "", 0.8},
		"csv": {map[string]string{"labels.csv": "a.json,cat\nb.json,dog\n", "a.json": "[1,0,0]", "b.json": "[0,1,0]",
			"more.json": "[1]"}, "", 1},
		"a command": {map[string]string{"a.json": "[1,0,0]", "b.json": "[0,1,0]"},
			`while read line; do case "$line" in *a.json*) echo 0.5;; *) echo 0.25;; esac; done`, 0.375},
		"samples of a load": {map[string]string{"samples.json": `{"count": 2, "label_output": "x", "labels":
			{"datatype": "INT64", "file": "y"}, "inputs":
			[{"name": "x", "datatype": "FP32", "shape": [3], "file": "x"}]}`,
			"x": strings.Repeat("\x00", 24), "y": "\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00"},
			"", 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := MeasureAccuracy(t.Context(), openEchoes(t, ", accuracy: 0.5", ", accuracy: 0.9"),
				Judging{Samples: sampleFolder(t, c.files), Score: c.score})
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Accuracies) != 2 || got.Accuracies[0].Value != c.want || got.Accuracies[1].Value != c.want {
				t.Errorf("%+v, want %v", got, c.want)
			}
		})
	}
}

func TestAccuracyCannotBeMeasured(t *testing.T) {
	for name, c := range map[string]struct {
		how   Judging
		files map[string]string
		want  string
	}{
		"no labels":    {Judging{}, map[string]string{"a.json": "[1,0,0]"}, "has a label"},
		"no score":     {Judging{Score: "read line"}, map[string]string{"a.json": "[1,0,0]"}, "gives no score"},
		"a bad score":  {Judging{Score: "read line; echo 7"}, map[string]string{"a.json": "[1,0,0]"}, "want a number"},
		"another app":  {Judging{App: "x"}, map[string]string{"0/a.json": "[1,0,0]"}, "--app"},
		"a wrong file": {Judging{}, map[string]string{"0/a.npy": "xyz"}, "0/a.npy: is no .npy file"},
		"outside":      {Judging{}, map[string]string{"labels.csv": "../a,1\n"}, "no file of this folder"},
	} {
		c.how.Samples = sampleFolder(t, c.files)
		_, err := MeasureAccuracy(t.Context(), openEchoes(t, ", accuracy: 0.5", ", accuracy: 0.9"), c.how)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A configuration need not say how accurate variants are where a profile does.
func TestMeasuredAccuracyIsUsed(t *testing.T) {
	file := &profiler.File{Version: profiler.Version, Accuracies: []profiler.Accuracy{
		{Variant: "large", How: profiler.ByLabels, Value: 0.8, Samples: 1000},
		{Variant: "small", How: profiler.ByAgreement, Value: 0.5, Samples: 1000, Reference: "large"},
	}}
	for _, d := range []string{"small", "large"} {
		for _, n := range []int{1, 4} {
			file.Points = append(file.Points, profiler.Point{Variant: d, DeviceType: "any", Batch: n, Concurrency: 1,
				Samples: 9, Mean: 10, P50: 10, P90: 10, P95: 10, P99: 10})
		}
	}
	o := openEchoes(t, "", "")
	if _, err := o.Profile(); err == nil || !strings.Contains(err.Error(), "sluice profile -f") {
		t.Errorf("without a measurement: %v", err)
	}
	p, err := o.ProfileOf(file)
	if err != nil {
		t.Fatal(err)
	}
	if v := p.Spec().Variants; v[0].Accuracy != 0.4 || v[1].Accuracy != 0.8 || len(p.Tables().Warnings) != 0 {
		t.Errorf("%v, %v, %q", v[0].Accuracy, v[1].Accuracy, p.Tables().Warnings)
	}
	if p, err = openEchoes(t, ", accuracy: 0.41", ", accuracy: 0.9").ProfileOf(file); err != nil {
		t.Fatal(err)
	}
	if v := p.Spec().Variants; v[0].Accuracy != 0.41 || v[1].Accuracy != 0.9 {
		t.Errorf("the configuration does not count: %v, %v", v[0].Accuracy, v[1].Accuracy)
	}
	if w := strings.Join(p.Tables().Warnings, "\n"); !strings.Contains(w, `"large"`) || strings.Contains(w, `"small"`) {
		t.Errorf("warnings: %s", w)
	}
}

func TestAgreementWithoutLabels(t *testing.T) {
	got, err := MeasureAccuracy(t.Context(), openEchoes(t, ", accuracy: 0.5", ", accuracy: 0.9"), Judging{Agree: true,
		Samples: sampleFolder(t, map[string]string{"a.json": "[1, 0, 0]", "x/b.json": "[0, 0, 7]"})})
	want := profiler.Accuracy{Variant: "small", How: profiler.ByAgreement, Value: 1, Samples: 2, Reference: "large"}
	if err != nil || len(got.Accuracies) != 1 || got.Accuracies[0] != want {
		t.Errorf("%+v, %v", got, err)
	}
}
