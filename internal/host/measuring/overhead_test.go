package measuring

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/hosttest"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/serving/workload"
)

// What a client waits outside the scheduler makes answers late by as much and changes nothing else.
func TestAnswersReachClientsLater(t *testing.T) {
	o, err := host.Open(hosttest.Write(t, hosttest.Fakes), host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	load := workload.Spec{DurationS: 2, Apps: []workload.AppSpec{{App: "app", Rate: 20}}}
	latency := func(overheads []profiler.Overhead) (mean, median float64) {
		t.Helper()
		f := &profiler.File{Version: profiler.Version, Overheads: overheads}
		for _, v := range []string{"big", "small"} {
			f.Points = append(f.Points, profiler.Point{
				Variant: v, DeviceType: o.Spec().DeviceTypes[0].Name, Batch: 1, Concurrency: 1, Samples: 1, Mean: 9e3,
				P50: 9e3, P90: 9e3, P95: 9e3, P99: 9e3,
			})
		}
		p, err := o.ProfileOf(f)
		if err != nil {
			t.Fatal(err)
		}
		planned, err := p.Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r, err := planned.Simulate(host.Simulation{NoBound: true}, "", &load)
		if err != nil {
			t.Fatal(err)
		}
		return r.Overall.Latency.Mean, r.Overall.Latency.P50
	}
	device := o.Spec().DeviceTypes[0].Name
	mean, median := latency(nil)
	later, laterMedian := latency([]profiler.Overhead{{DeviceType: device, Query: 700}})
	if d, m := later-mean, laterMedian-median; d < 0.699 || d > 0.701 || m < 0.699 || m > 0.701 {
		t.Errorf("0.7 ms outside: later by %v ms on average and %v ms in the median", d, m)
	}
	longer, _ := latency([]profiler.Overhead{{DeviceType: device, Batch: float64(time.Millisecond / time.Microsecond)}})
	if longer-mean < 0.999 {
		t.Errorf("1 ms around batches: later by %v ms on average", longer-mean)
	}
}
