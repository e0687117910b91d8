package config

import (
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/serving"
)

// Workers do not take parts of machines as their types by default. A part that fits on no worker leads to a warning.
func TestParts(t *testing.T) {
	f, err := Parse([]byte(strings.Replace(small, "[{name: local}]", `
  - {name: local, cores: 4, memory: 2GiB, accelerators: 2}
  - {name: share, part: true, cores: 2, percent: 30, memory: 1GiB}
  - {name: broad, part: true, cores: 5}
  - {name: heavy, part: true, memory: 3GiB}`, 1)), "x.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w, err := f.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	if s := w.Spec; s.Workers[0].DeviceType != 0 || s.DeviceTypes[0].Accelerators != 2 ||
		s.DeviceTypes[1] != (serving.DeviceType{
			Name: "share", Cores: 2, MemoryBytes: 1 << 30, Part: true, Percent: 30,
		}) {
		t.Errorf("%+v, workers %+v", s.DeviceTypes, s.Workers)
	}
	if got := strings.Join(w.Warnings, "; "); got != `part "broad" fits on no worker; part "heavy" fits on no worker` {
		t.Errorf("warnings: %s", got)
	}
}
