package functions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/profiler"
)

// Models are measured once the server was idle at idleChecks checks in a row, idleCheckEvery apart, one after the other
// as long as it stays so.
const (
	idleCheckEvery = time.Second
	idleChecks     = 3
)

// WhenIdle does what next returns, one after the other, while idle reports that no query is served. next returns nil
// while there is nothing to do. WhenIdle returns when ctx ends.
func WhenIdle(ctx context.Context, idle func() bool, next func() func(context.Context)) {
	tick := time.NewTicker(idleCheckEvery)
	defer tick.Stop()
	for looks := 0; ctx.Err() == nil; {
		if looks < idleChecks {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
		do := next()
		switch {
		case do == nil || !idle():
			looks = 0
		case looks < idleChecks:
			looks++
		}
		if looks == idleChecks {
			do(ctx)
		}
	}
}

// Refinement returns what measures a function that was deployed with predicted latencies: measured ones replace them.
// It is nil when there is none.
func (m *Manager) Refinement() func(context.Context) {
	if m.c.Predictor == nil {
		return nil
	}
	l := m.unmeasured()
	if l == nil {
		return nil
	}
	return func(ctx context.Context) {
		if err := m.refine(ctx, l); err != nil && ctx.Err() == nil {
			m.keepPrediction(l)
			m.log.add(l.Name, "measure", err.Error())
		}
	}
}

// unmeasured returns a function with predicted latencies whose measurement has not failed; nil when there is none.
func (m *Manager) unmeasured() *Live {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.live {
		if l.Predicted && m.keptPredictions[l.Name] != l.Version {
			return l
		}
	}
	return nil
}

// keepPrediction notes that a version is not to be measured again.
func (m *Manager) keepPrediction(l *Live) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keptPredictions[l.Name] = l.Version
}

// refine measures a function and plans with the measurements from now on. If no plan can be made with them, the
// prediction stays: the function serves, perhaps late, and its status shows the error.
func (m *Manager) refine(ctx context.Context, l *Live) error {
	m.mu.Lock()
	spec := m.spec
	m.mu.Unlock()
	var f *profiler.File
	var failed error
	err := m.underway.measure(ctx, func() {
		f, failed = m.c.Predictor.Predict(ctx, &Subject{
			Spec: spec, Variant: l.Variant, Described: l.Described,
			File: m.c.fileOf(&l.Function, l.Described, spec.Variants[l.Variant].MaxBatch),
		})
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("it could not be measured, predicted latencies stay: %w", err)
	}
	return m.change(ctx, func() error {
		m.mu.Lock()
		spec, is := m.spec, m.live[l.Name]
		m.mu.Unlock()
		if is != l {
			return nil // replaced or deleted meanwhile
		}
		next := *l
		off, err := relativeError(l.Profile, f)
		if err != nil {
			return err
		}
		next.Predicted, next.Off = false, &off
		if next.Profile, err = json.Marshal(f); err != nil {
			return err
		}
		m.mu.Lock()
		measured := m.measured
		m.mu.Unlock()
		if measured, err = withProfile(spec, l.Variant, measured, next.Profile); err != nil {
			return err
		}
		g, err := m.growth(spec, measured)
		if err != nil {
			return err
		}
		if _, err := m.host.Plan(ctx, g); err != nil {
			return errors.Join(fmt.Errorf(
				"predicted latencies stay, %.0f %% off: no plan can be made with what was measured: %w", 100*off, err),
				m.savePredictionError(l, off))
		}
		if there, err := m.c.Store.Amend(next.Function); err != nil || !there {
			return err
		}
		return m.put(g, nil, func() {
			m.live[l.Name] = &next
			m.log.add(l.Name, "measure", fmt.Sprintf("predicted latencies were %.0f %% off", 100*off))
		})
	})
}

// savePredictionError keeps a prediction and stores its error.
func (m *Manager) savePredictionError(l *Live, off float64) error {
	next := *l
	next.Off = &off
	if _, err := m.c.Store.Amend(next.Function); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live[l.Name] = &next
	return nil
}

// relativeError returns the mean magnitude of the relative difference of predicted 95th percentiles from measured ones.
func relativeError(record json.RawMessage, measured *profiler.File) (float64, error) {
	var predicted profiler.File
	if err := json.Unmarshal(record, &predicted); err != nil {
		return 0, err
	}
	sum, n := 0.0, 0
	for _, p := range predicted.Points {
		for _, x := range measured.Points {
			if p.DeviceType == x.DeviceType && p.Batch == x.Batch && x.Concurrency == 1 && x.P95 > 0 {
				sum, n = sum+math.Abs(p.P95/x.P95-1), n+1
			}
		}
	}
	if n == 0 {
		return 0, fmt.Errorf("nothing was measured that had been predicted")
	}
	return sum / float64(n), nil
}
