package functions

import (
	"context"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Measured is a Predictor that runs the model for a short time on a machine of every type, beside the instances that
// serve there.
type Measured struct {
	Backend func(serving.WorkerID) dataplane.Backend
	Models  Binder // of the backends; nil if they know the subject's variant
	Host    profiler.Host
	Time    time.Duration // limit for one batch size; 0 means 300 ms
}

const measuredTime = 300 * time.Millisecond

// Predict implements Predictor. A run may use all cores of the machine, or of the part
// of one.
func (m *Measured) Predict(ctx context.Context, s *Subject) (*profiler.File, error) {
	var files []*profiler.File
	alias, release := s.aliased(m.Models)
	defer release()
	for _, x := range s.places() {
		id, w, cores := x.device, x.worker, x.cores
		c := profiler.Config{Spec: s.Spec, Backend: alias(m.Backend(w)), Variants: []serving.VariantID{s.Variant},
			DeviceType: id, Worker: w, Cores: cores,
			Tensors:   func(serving.VariantID) ([]tensor.Spec, bool, error) { return s.Inputs, s.File.Batched, nil },
			MeanWidth: 0.1, P95Width: 0.2, MaxTime: m.Time, MaxSamples: 200, Seed: 1, Host: m.Host}
		if c.MaxTime <= 0 {
			c.MaxTime = measuredTime
		}
		f, err := profiler.Run(ctx, c, nil)
		if err == nil {
			err = f.Failed()
		}
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	switch len(files) {
	case 0:
		return nil, errNoMachine
	case 1:
		return files[0], nil
	}
	return profiler.Merge(files...)
}
