package measuring

import (
	"context"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/hosttest"
	"github.com/sluice-serving/sluice/internal/measure/loadgen"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/tensor"
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

// slowTarget is a server that takes its time for every query, and has so many files to open.
type slowTarget struct {
	loadgen.Target
	took       time.Duration
	files      int64
	open, most atomic.Int64
}

func (t *slowTarget) Infer(ctx context.Context, _ *loadgen.Request) (*loadgen.Answer, error) {
	now := t.open.Add(1)
	defer t.open.Add(-1)
	t.most.Store(max(t.most.Load(), now))
	if now > t.files {
		return nil, fmt.Errorf("dial: %w", syscall.EMFILE)
	}
	select {
	case <-time.After(t.took):
		return &loadgen.Answer{Stages: make([]loadgen.StageTime, 1)}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// What is measured around queries takes few files, and says so where there are not even those, or no answers.
func TestOverheadsTakeFewFiles(t *testing.T) {
	inputs := []tensor.Spec{{Name: "x", DType: tensor.FP32, Shape: []int64{-1, 1}}}
	samples, err := loadgen.Synthetic(inputs, 1, overheadSeed)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		took  time.Duration
		files int64
		wrong string
	}{
		{10 * time.Millisecond, overheadAtOnce, ""},
		{10 * time.Millisecond, overheadAtOnce / 2, "dial: too many open files"},
		{time.Hour, overheadAtOnce, "queries were not answered within 30s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			target := &slowTarget{took: x.took, files: x.files}
			out, err := sendOpenLoop(t.Context(), target, []string{"m"}, []*loadgen.Samples{samples}, 1e5)
			said := ""
			if err != nil {
				said = err.Error()
			}
			if said != x.wrong {
				t.Errorf("%+v: %v", x, err)
			}
			if n := target.most.Load(); n > overheadAtOnce || n < 2 {
				t.Errorf("%+v: %d queries at once", x, n)
			}
			if x.wrong == "" && len(out) != overheadQueries {
				t.Errorf("%+v: %d answers", x, len(out))
			}
		})
	}
}
