package config

import (
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/serving"
)

// Floors and targets lie where answers can be, and errors name file, field and value.
func TestAccuracyFloorsAndTargets(t *testing.T) {
	head := `version: 1
device_types: [{name: mine, tenure: owned}, {name: hired, tenure: rented, price_per_hour: 1}, {name: either}]
workers: [{name: w, device_type: mine, backend: {kind: fake}}]
apps:
  - name: a
    slo: {latency: 1s}
    variants: [{name: x, accuracy: 0.9}, {name: y, accuracy: 0.8}]
`
	w, err := resolve(t, t.TempDir(), head+"    accuracy_floor: 0.8\n    accuracy_target: 0.85\n")
	if err != nil {
		t.Fatal(err)
	}
	if a := &w.Spec.Apps[0]; a.Floor != 0.8 || a.AccuracyTarget != 0.85 {
		t.Errorf("app %+v", a)
	}
	for d, want := range []serving.Tenure{serving.Owned, serving.Rented, serving.TenureUnstated} {
		if got := w.Spec.DeviceTypes[d].Tenure; got != want {
			t.Errorf("device type %d is %q, want %q", d, got, want)
		}
	}
	for _, c := range []struct{ text, want string }{
		{
			head + "    accuracy_target: 1.2\n",
			"sluice.yaml:8: apps[0].accuracy_target: is 1.2, want 0 to 1",
		},
		{
			head + "    accuracy_target: 0.95\n",
			"sluice.yaml:8: apps[0].accuracy_target: is 0.95, but the most accurate answers of the app have 0.9",
		},
		{
			head + "    accuracy_floor: 0.85\n    accuracy_target: 0.8\n",
			"sluice.yaml:9: apps[0].accuracy_target: is 0.8, below accuracy_floor, which is 0.85",
		},
		{
			head + "    accuracy_floor: 0.95\n",
			`sluice.yaml:8: apps[0].accuracy_floor: is 0.95, but the most accurate variant of stage "a" has 0.9`,
		},
		{
			strings.Replace(head, "owned", "mine", 1),
			`sluice.yaml:2: device_types[0].tenure: is "mine", want owned or rented`,
		},
		{
			head + "    accuracy_floor: 0.85\n    system: {router: fcfs, batcher: single}\n" +
				"placement: [{worker: w, variants: [y]}]\n",
			`placement: no instance serves stage "a" of app "a"`,
		},
	} {
		f, err := Parse([]byte(c.text), "sluice.yaml")
		if err == nil {
			_, err = f.Resolve()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
}
