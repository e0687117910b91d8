package systems

import (
	"cmp"
	"fmt"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/engine/journal"
)

// Record writes into a journal's header the components and options from which Recorded builds the system's engine. It
// leaves the header's other fields as they are. It does not record the planner and options that only the planner reads:
// a journal holds the plans.
func (s System) Record(h *journal.Header) {
	h.System, h.Router, h.Batcher, h.Scaler = s.Name, s.Router, s.Batcher, s.Scaler
	o := &s.Options
	if s.Scaler == ratebands {
		o.KeepAlive.Rule = cmp.Or(o.KeepAlive.Rule, cheapest) // see recorded
	}
	h.BatchSize, h.Timeout, h.Replan, h.Learn = o.BatchSize, o.Timeout, o.Replan, o.Learn
	h.Settings = nil
	for at := range table {
		x := &table[at]
		v := x.text(o)
		if v == "" || inHeader[x.Name] || !s.engineReads(x) {
			continue
		}
		if h.Settings == nil {
			h.Settings = make(map[string]string)
		}
		h.Settings[x.Name] = v
	}
}

// inHeader are the options with header fields of their own.
var inHeader = map[string]bool{"batch": true, "timeout": true, "replan": true, "learn": true}

// engineReads reports whether a component other than the planner reads an option.
func (s System) engineReads(o *Option) bool {
	for _, p := range s.Components() {
		if _, ok := o.reader(p); ok && p.Kind != Planner {
			return true
		}
	}
	return false
}

// Recorded builds a new engine like the one that a journal was recorded from.
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

// recorded is the system of a header, with the options that its engine reads. Journals of earlier versions may name
// options that none of their components reads.
func recorded(h journal.Header) (System, error) {
	s := System{Name: h.System, Router: h.Router, Batcher: h.Batcher, Scaler: h.Scaler}
	s.Options = Options{BatchSize: h.BatchSize, Timeout: h.Timeout, Replan: h.Replan, Learn: h.Learn}
	err := s.Options.Set(h.Settings)
	if s.Scaler == ratebands {
		// Journals name the keep-alive rule. Those of earlier versions do not where it was the default of then.
		s.Options.KeepAlive.Rule = cmp.Or(s.Options.KeepAlive.Rule, lsth)
	}
	return s, err
}
