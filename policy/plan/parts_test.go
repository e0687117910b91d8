package plan

import (
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/serving"
)

func TestPartsFit(t *testing.T) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{
			{Name: "machine", Cores: 8, Accelerators: 2, MemoryBytes: 100}, {Name: "plain", Cores: 8},
			{
				Name: "small", Part: true, Cores: 1, Percent: 60, MemoryBytes: 20,
			}, {Name: "threads", Part: true, Cores: 4},
		},
		Workers: []serving.Worker{{Name: "w"}, {Name: "p", DeviceType: 1}}, Stages: []serving.Stage{{}},
		Variants: []serving.Variant{{MaxBatch: 1}},
	}
	at := func(worker serving.WorkerID, part, accelerator int32) Instance {
		return Instance{Worker: worker, Part: part, Accelerator: accelerator, Slots: 1, Variants: []Variant{{Limit: 1}}}
	}
	for _, c := range []struct {
		instances []Instance
		says      string
	}{
		{[]Instance{at(0, 3, 0), at(0, 3, 1), at(0, 4, 0)}, ""},
		{[]Instance{at(0, 3, 0), at(0, 3, 0)}, `instance 1: parts take 120 per cent of accelerator 0 of worker "w"`},
		{
			[]Instance{at(0, 4, 0), at(0, 4, 0), at(1, 4, 0), at(0, 3, 0)},
			`instance 3: parts take 9 threads of worker "w", which has 8`,
		},
		{
			[]Instance{at(1, 3, 0)},
			`instance 0: a part takes 60 per cent of an accelerator of worker "p", which has none`,
		},
		{[]Instance{at(0, 3, 2)}, "accelerator 2 does not exist"},
		{[]Instance{at(0, 1, 0)}, "is not 1 + the number of a device type that is a part"},
		{[]Instance{at(0, 0, 0), at(0, 4, 0), at(0, 4, 0)}, ""}, // an instance with the whole machine is not counted
	} {
		err := (&Plan{Instances: c.instances}).Validate(spec)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%v, want %q", err, c.says)
		}
	}
	spec.DeviceTypes[0].MemoryBytes = 30
	if err := (&Plan{Instances: []Instance{at(0, 3, 0), at(0, 3, 1)}}).Validate(spec); err == nil ||
		!strings.Contains(err.Error(), "parts take 40 bytes") {
		t.Error(err)
	}
}
