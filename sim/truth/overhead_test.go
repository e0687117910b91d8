package truth

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// The measured overhead of a device type is in all of its service times and in no others.
func TestOverheadsAreByDeviceType(t *testing.T) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "a"}, {Name: "b"}},
		Variants:    []serving.Variant{{Name: "v", MaxBatch: 1}},
	}
	const ms = time.Millisecond
	x, err := NewTable(spec, serving.Measurements{
		Latency: []serving.LatencyPoint{
			{Items: 1, Concurrency: 1, Mean: 10 * ms}, {DeviceType: 1, Items: 1, Concurrency: 1, Mean: 10 * ms},
		},
		Overhead: []serving.Overhead{{DeviceType: 1, Batch: 2 * ms, Query: ms}},
	}, Exact, nil)
	if err != nil {
		t.Fatal(err)
	}
	x.Overhead = ms
	for d, want := range []time.Duration{11 * ms, 13 * ms} {
		d := serving.DeviceTypeID(d)
		mean, _ := x.Mean(0, d, 1, 1)
		if got := x.Service(0, d, 1, 1, 0); got != want || mean != want || x.Chance(0, d, 1, 1, want) != 1 ||
			x.Chance(0, d, 1, 1, want-1) != 0 {
			t.Errorf("device type %d: %v, mean %v, want %v", d, got, mean, want)
		}
	}
}
