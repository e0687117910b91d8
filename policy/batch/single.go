package batch

import "github.com/sluice-serving/sluice/policy/plan"

// Single runs one query at a time, as soon as a slot is free (Kairos §4: a query is already a batch).
type Single struct{}

// Name implements Rule.
func (Single) Name() string { return "single" }

// Needs implements Rule.
func (Single) Needs() plan.Sections { return 0 }

// Traits implements Rule.
func (Single) Traits() Traits { return Traits{Unbatched: true} }

// New implements Rule. The rule keeps no state.
func (Single) New() Batcher { return single{} }

type single struct{ NoLearning }

func (single) Decide(v *View) Decision { return v.RunFirst(1, Idle) }
