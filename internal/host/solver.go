package host

import (
	"sync"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/runtime/highs"
)

// Solver returns the solver of integer programs, which the whole process shares and nobody closes. It is made when it
// is first asked for: its start takes a moment, and most planners need none. Its compiled form is kept in the user's
// cache folder. An error is of kind fault.Missing.
func Solver() (milp.Solver, error) { return solver() }

var solver = sync.OnceValues(func() (milp.Solver, error) {
	s, err := highs.New(highs.Options{CacheDir: highs.DefaultCacheDir()})
	if err != nil {
		return nil, fault.Errorf(fault.Missing, "the solver of integer programs does not start: %w", err)
	}
	return s, nil
})
