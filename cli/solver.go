package cli

import (
	"github.com/sluice-serving/sluice/algo/milp"
	"github.com/sluice-serving/sluice/runtime/highs"
)

// newSolver makes the solver of integer programs; its compiled form is kept in the user's cache folder.
func newSolver() (milp.Solver, error) {
	s, err := highs.New(highs.Options{CacheDir: highs.DefaultCacheDir()})
	if err != nil {
		return nil, exit(ExitMissing, "the solver of integer programs does not start: %v", err)
	}
	return s, nil
}
