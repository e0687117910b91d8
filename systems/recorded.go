package systems

import (
	"fmt"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/engine/journal"
)

// Record writes into a journal's header the parts and options that Recorded needs to build the system's engine again.
// It leaves the header's other fields as they are.
func (s System) Record(h *journal.Header) {
	h.System, h.Router, h.Batcher, h.Scaler = s.Name, s.Router, s.Batcher, s.Scaler
	o := &s.Options
	h.BatchSize, h.Timeout, h.Replan, h.Learn = o.BatchSize, o.Timeout, o.Replan, o.Learn
	h.Settings = o.Settings()
}

// Recorded builds a fresh engine as the one that a journal was recorded from.
func Recorded(h journal.Header) (*engine.Engine, error) {
	s, err := recorded(h)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	measured, err := h.Believed(h.Spec, h.Measurements)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return s.Engine(h.Spec, measured, h.Provides)
}

// recorded is the system of a header, with the options that its engine reads. Its planner is not on record.
func recorded(h journal.Header) (System, error) {
	s := System{Name: h.System, Router: h.Router, Batcher: h.Batcher, Scaler: h.Scaler}
	s.Options = Options{BatchSize: h.BatchSize, Timeout: h.Timeout, Replan: h.Replan, Learn: h.Learn}
	return s, s.Options.Set(h.Settings)
}
