package functions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/measure/profiler"
)

// refineLook is how often it is looked whether a function is to be measured that was deployed by prediction, and
// quietLooks how many looks in a row have to find nothing to do before that.
const (
	refineLook = time.Second
	quietLooks = 3
)

// Refine measures, one by one, functions that were deployed with predicted latencies, while quiet says that nothing is
// served, and puts what was measured in the place of what was predicted. It returns when ctx ends.
func (m *Manager) Refine(ctx context.Context, quiet func() bool) {
	if m.c.Predictor == nil {
		return
	}
	tick := time.NewTicker(refineLook)
	defer tick.Stop()
	for looks := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		l := m.unmeasured()
		if l == nil || !quiet() {
			looks = 0
		} else if looks++; looks >= quietLooks {
			looks = 0
			if err := m.refine(ctx, l); err != nil && ctx.Err() == nil {
				m.tried(l)
				m.log.add(l.Name, "measure", err.Error())
			}
		}
	}
}

// unmeasured returns a function that was predicted and for which measuring has not failed; nil when there is none.
func (m *Manager) unmeasured() *Live {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.live {
		if l.Predicted && m.given[l.Name] != l.Version {
			return l
		}
	}
	return nil
}

// tried takes note that the prediction of a version stays.
func (m *Manager) tried(l *Live) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.given[l.Name] = l.Version
}

// refine measures a function and plans with that from now on. Where no plan can be made with it, the prediction stays:
// the function serves, late perhaps, and says so.
func (m *Manager) refine(ctx context.Context, l *Live) error {
	return m.change(ctx, func() error {
		m.mu.Lock()
		spec, is := m.spec, m.live[l.Name]
		m.mu.Unlock()
		if is != l {
			return nil // replaced or deleted meanwhile
		}
		f, err := m.c.Predictor.Predict(ctx, &Subject{
			Spec: spec, Variant: l.Variant, Path: m.c.Store.ModelPath(l.Model.SHA256), Described: l.Described,
		})
		if err != nil {
			return fmt.Errorf("it could not be measured, predicted latencies stay: %w", err)
		}
		next := *l
		off, err := wrong(l.Profile, f)
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
		if measured, err = withProfile(spec, l.Variant, without(measured, l.Variant), next.Profile); err != nil {
			return err
		}
		g, err := m.growth(spec, measured)
		if err != nil {
			return err
		}
		if err := m.host.Feasible(ctx, g); err != nil {
			return errors.Join(fmt.Errorf(
				"predicted latencies stay, %.0f %% off: no plan can be made with what was measured: %w", 100*off, err),
				m.stays(l, off))
		}
		if there, err := m.c.Store.Amend(next.Function); err != nil || !there {
			return err
		}
		m.mu.Lock()
		m.measured = measured
		m.live[l.Name] = &next
		m.mu.Unlock()
		m.log.add(l.Name, "measure", fmt.Sprintf("predicted latencies were %.0f %% off", 100*off))
		return m.grow(g)
	})
}

// stays keeps by how much a prediction is off that stays.
func (m *Manager) stays(l *Live, off float64) error {
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

// wrong is the mean relative difference, without its sign, of predicted 95th percentiles from measured ones.
func wrong(record json.RawMessage, measured *profiler.File) (float64, error) {
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
