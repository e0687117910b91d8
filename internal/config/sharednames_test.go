package config

import (
	"strings"
	"testing"
)

// Two apps may run one model under one name. Different models under one name are found when the file is checked:
// profiles could not tell them apart.
func TestVariantsOfOneNameAreOneModel(t *testing.T) {
	const two = `version: 1
device_types: [{name: d}]
workers: [{name: w, backend: {kind: fake, latency: 1ms}}]
apps:
  - {name: a, slo: {latency: 1s}, inputs: [{name: x, datatype: FP32, shape: [-1]}], variants: [{name: v, model: m}]}
  - {name: b, slo: {latency: 1s}, inputs: [{name: x, datatype: FP32, shape: [-1]}], variants: [{name: v, model: OTHER}]}
`
	for other, want := range map[string]string{"m": "", "n": `apps[1]: variant "v" is another model`} {
		f, err := Parse([]byte(strings.Replace(two, "OTHER", other, 1)), "x.yaml")
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Resolve()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("model %s: %v", other, err)
		}
	}
}
