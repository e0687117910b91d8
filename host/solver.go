package host

import (
	"sync"

	"github.com/sluice-serving/sluice/algo/milp"
	"github.com/sluice-serving/sluice/host/fault"
	"github.com/sluice-serving/sluice/runtime/highs"
)

// NewSolver makes a solver of integer programs. Its compiled form is kept in the user's cache folder. An error is of
// kind fault.Missing.
func NewSolver() (milp.Solver, error) {
	s, err := highs.New(highs.Options{CacheDir: highs.DefaultCacheDir()})
	if err != nil {
		return nil, fault.Errorf(fault.Missing, "the solver of integer programs does not start: %w", err)
	}
	return s, nil
}

// sharedSolver is made when a planner first needs it: compiling it takes a moment, and most planners need none.
type sharedSolver struct {
	mu   sync.Mutex
	made milp.Solver
}

func (s *sharedSolver) get() (milp.Solver, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made == nil {
		made, err := NewSolver()
		if err != nil {
			return nil, err
		}
		s.made = made
	}
	return s.made, nil
}

// Solver returns the solver that all planners of this configuration share. An error is of kind fault.Missing.
func (o *Opened) Solver() (milp.Solver, error) { return o.solver.get() }
