package systems

import (
	"fmt"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/engine/journal"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Recorded builds a fresh engine as the one that a journal was recorded from.
func Recorded(h journal.Header) (*engine.Engine, error) {
	statistic, err := profile.ParseStatistic(h.Statistic)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	var measured profile.Profile
	if !h.Learn || len(h.Measurements.Latency) > 0 {
		if measured, err = profile.NewTable(h.Spec, h.Measurements, statistic); err != nil {
			return nil, fmt.Errorf("journal: %w", err)
		}
	}
	o := Options{BatchSize: h.BatchSize, Timeout: h.Timeout, Replan: h.Replan, Learn: h.Learn}
	if err := o.Set(h.Settings); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return System{Name: h.System, Router: h.Router, Batcher: h.Batcher, Scaler: h.Scaler, Options: o}.Engine(h.Spec, measured, h.Provides)
}
