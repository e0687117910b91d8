package cli

import (
	"github.com/sluice-serving/sluice/algo/milp"
)

// newSolver makes the solver of integer programs; its compiled form is kept in the user's cache folder.
func newSolver() (milp.Solver, error) {
	return nil, exit(ExitMissing, "no solver")
}
