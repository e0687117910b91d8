package systems

import (
	"fmt"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/engine/journal"
)

// Recorded builds a fresh engine as the one that a journal was recorded from.
func Recorded(h journal.Header) (*engine.Engine, error) {
	measured, err := h.Believed(h.Spec, h.Measurements)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	o := Options{BatchSize: h.BatchSize, Timeout: h.Timeout, Replan: h.Replan, Learn: h.Learn}
	if err := o.Set(h.Settings); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return System{
		Name: h.System, Router: h.Router, Batcher: h.Batcher, Scaler: h.Scaler, Options: o,
	}.Engine(h.Spec, measured, h.Provides)
}
