package scrooge

import (
	"context"
	"errors"

	"github.com/sluice-serving/sluice/algo/milp"
)

var errLater = errors.New("scrooge: being built")

func Exact(p *Problem) (*Allocation, error)                      { return nil, errLater }
func Greedy(p *Problem) (*Allocation, error)                     { return nil, errLater }
func Brute(ctx context.Context, p *Problem) (*Allocation, error) { return nil, errLater }
func AsWritten(ctx context.Context, p *Problem, s milp.Solver) (*Allocation, error) {
	return nil, errLater
}
func Bound(p *Problem) float64 { return 0 }

// Method makes allocations. ctx ends those that search for long.
type Method func(ctx context.Context, p *Problem) (*Allocation, error)
