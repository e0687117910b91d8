package functions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/papers/infless/operators"
	"github.com/sluice-serving/sluice/serving"
)

// Predicted is a Predictor that adds up the times of the model's operators (INFless §3.3), and a tenth as in the paper.
// Operators that are not in the store are measured, each by itself.
type Predicted struct {
	Runtime operators.Runtime
	Store   *operators.Store
	Host    profiler.Host
	// Runs reports whether a worker runs models with Runtime. Latencies on others cannot be predicted.
	Runs func(serving.WorkerID) bool
}

// quickEffort bounds the measurement of an operator that is not in the store. The deployment waits for it, and the
// whole model is measured later.
var quickEffort = operators.Effort{
	MinTime: 5 * time.Millisecond, MaxTime: 40 * time.Millisecond, MinRuns: 5, MaxRuns: 1000,
}

// Predict implements Predictor, for batches of 1, 2, 4, ... and the variant's largest. It fails when some operator
// cannot be run by itself.
func (p *Predicted) Predict(ctx context.Context, s *Subject) (*profiler.File, error) {
	places := s.places()
	if len(places) == 0 {
		return nil, errNoMachine
	}
	var threads []int
	for _, x := range places {
		if !p.Runs(x.worker) {
			return nil, fmt.Errorf("worker %q does not run models in this process", s.Spec.Workers[x.worker].Name)
		}
		if !slices.Contains(threads, x.cores) {
			threads = append(threads, x.cores)
		}
	}
	v := &s.Spec.Variants[s.Variant]
	got, err := operators.Predict(ctx, operators.Config{
		Runtime: p.Runtime, Store: p.Store, Rounds: 1, Effort: quickEffort,
	}, s.Path, batchSizes(v.MaxBatch), threads)
	if err != nil {
		return nil, err
	}
	out := &profiler.File{
		Version: profiler.Version, Created: time.Now().UTC().Truncate(time.Second), Host: p.Host,
		Points: []profiler.Point{}, Loads: []profiler.Load{},
	}
	for _, x := range places {
		device := s.Spec.DeviceTypes[x.device].Name
		out.Loads = append(out.Loads, profiler.Load{
			Variant: v.Name, DeviceType: device, Load: got.Load.Seconds() * 1e3,
		})
		for k := range got.Predictions {
			if g := &got.Predictions[k]; g.Threads == x.cores {
				out.Points = append(out.Points, g.Point(v.Name, device))
			}
		}
	}
	return out, nil
}

// batchSizes returns 1, 2, 4, ... and most itself.
func batchSizes(most int) (out []int) {
	for n := 1; n < most; n *= 2 {
		out = append(out, n)
	}
	return append(out, most)
}

// place is a worker of a device type to measure a model on, with the threads that a run may use.
type place struct {
	device serving.DeviceTypeID
	worker serving.WorkerID
	cores  int
}

var errNoMachine = errors.New("there is no machine to run it on")

// places returns the first machine of every type, and for every part the first machine with room for it, with all of
// their cores. Parts with a share of an accelerator are left out, because this process cannot divide accelerators.
func (s *Subject) places() (out []place) {
	first := make(map[serving.DeviceTypeID]serving.WorkerID)
	for w := len(s.Spec.Workers) - 1; w >= 0; w-- {
		first[s.Spec.Workers[w].DeviceType] = serving.WorkerID(w)
	}
	for d := range s.Spec.DeviceTypes {
		id := serving.DeviceTypeID(d)
		t := &s.Spec.DeviceTypes[d]
		if w, ok := first[id]; ok {
			out = append(out, place{id, w, max(t.Cores, 1)})
		}
		if t.Part && t.Percent == 0 {
			if hosts := s.Spec.Hosts(id); len(hosts) > 0 {
				out = append(out, place{id, hosts[0], t.Cores})
			}
		}
	}
	return out
}
