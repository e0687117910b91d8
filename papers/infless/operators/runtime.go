package operators

import (
	"context"

	"github.com/sluice-serving/sluice/dataplane"
)

// Runtime runs models. Predictions are of its times.
type Runtime interface {
	// Optimize writes to the file to the graph that the runtime executes for a model file.
	Optimize(model, to string) error
	// Open loads a model file as variant 0, to run with a number of threads in batches of at most limit items. asIs
	// runs the graph in the file without optimisation.
	Open(ctx context.Context, model string, threads, limit int, asIs bool) (dataplane.Runner, error)
}
