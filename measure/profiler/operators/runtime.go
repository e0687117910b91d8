package operators

import (
	"context"

	"github.com/sluice-serving/sluice/dataplane"
)

// Runtime runs models. It is what the times are those of.
type Runtime interface {
	// Optimize writes the graph that the runtime makes of a model file and runs.
	Optimize(model, to string) error
	// Open loads a model file as variant 0 to be run by so many threads, in batches of up to limit items; asIs runs the
	// graph as it lies in the file.
	Open(ctx context.Context, model string, threads, limit int, asIs bool) (dataplane.Runner, error)
}
