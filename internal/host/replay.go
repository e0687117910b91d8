package host

import (
	"errors"
	"os"

	"github.com/sluice-serving/sluice/internal/engine/journal"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/systems"
)

// Replayed is the outcome of a replay.
type Replayed struct {
	Steps, Decisions int
	// Difference is the first decision that differs from the journal; nil when none does.
	Difference *journal.Difference
	// Cut says where the journal was cut off; nil for a whole one.
	Cut *journal.Cut
}

// Replay feeds the inputs of a journal to a fresh engine and compares its decisions with those recorded. An error is of
// kind fault.Config when the file is no journal, and of kind fault.Failed when an invariant of the engine is broken.
func Replay(path string) (*Replayed, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	defer f.Close()
	r, err := journal.NewReader(f)
	if err != nil {
		return nil, fault.Errorf(fault.Config, "%s: %w", path, err)
	}
	e, err := systems.Recorded(r.Header())
	if err != nil {
		return nil, fault.Errorf(fault.Config, "%s: %w", path, err)
	}
	out := &Replayed{}
	out.Difference, err = journal.Replay(r, e, func(s journal.Step) error {
		out.Steps++
		out.Decisions += len(s.Out)
		return nil
	})
	if errors.As(err, &out.Cut) {
		err = nil
	}
	if err == nil {
		err = e.Check()
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}
