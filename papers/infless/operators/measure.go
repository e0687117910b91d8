package operators

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
)

// Limits of the model of one operator. It must run long enough for the clock, but not so long that it is always
// interrupted.
const (
	runTime    = 300.0  // microseconds
	maxRunTime = 3000.0 // microseconds
	maxCopies  = 128
	// Least time of an operator that is measured between products of matrices, so that it is not lost among them; and
	// most copies of it.
	minHeatedTime   = 3.0 // microseconds
	maxHeatedCopies = 16
)

// bench measures operators.
type bench struct {
	rt        Runtime
	dir       string // for models
	effort    Effort
	baselines map[int]Timing // by threads: time of a model without operators
}

// operator measures one operator with a number of threads. A quick one is measured in many copies.
func (b *bench) operator(ctx context.Context, o *Operator, threads int) (Timing, error) {
	still, err := b.empty(ctx, threads)
	if err != nil {
		return Timing{}, err
	}
	in, err := inputs(o)
	if err != nil {
		return Timing{}, fmt.Errorf("operator %s: %w", o.Key(threads), err)
	}
	batch := &dataplane.Batch{ID: 1, Items: 1, Portions: []dataplane.Portion{{Query: 1, Items: 1, Inputs: in}}}
	run := func(copies int, base Timing, heat bool, e Effort) (Timing, error) {
		t, err := b.run(ctx, copiesModel(o, copies, heat), threads, 1, batch, e)
		if err != nil {
			return t, fmt.Errorf("operator %s: %w", o.Key(threads), err)
		}
		// Of two differences of measurements, the typical one may be smaller than the shortest.
		n, best := float64(copies), max(0, t.Best-base.Best)
		return Timing{Best: best / n, Typical: max(best, t.Typical-base.Typical) / n, Runs: t.Runs}, nil
	}
	first, err := run(1, still, false, Effort{MinRuns: 5, MaxRuns: 5})
	if err != nil {
		return Timing{}, err
	}
	copies := o.copies(first.Best)
	if computeBound[o.Node.OpType] || first.Best < minHeatedTime {
		return run(copies, still, false, b.effort)
	}
	copies = min(copies, maxHeatedCopies)
	base, err := b.baseline(ctx, copies, threads, true)
	if err != nil {
		return Timing{}, err
	}
	return run(copies, base, true, b.effort)
}

// copies returns how many copies of an operator are measured together. Their weights should have about as many bytes as
// the model's footprint. Without weights, only the clock matters.
func (o *Operator) copies(us float64) int {
	us = max(us, 0.01)
	n := runTime / us
	if o.Footprint > 0 {
		n = min(float64(o.Footprint)/float64(o.weights()), maxRunTime/us)
	}
	return int(max(1, min(math.Round(n), maxCopies)))
}

// empty measures the model without copies.
func (b *bench) empty(ctx context.Context, threads int) (_ Timing, err error) {
	t, ok := b.baselines[threads]
	if !ok {
		if t, err = b.baseline(ctx, 0, threads, false); err == nil {
			b.baselines[threads] = t
		}
	}
	return t, err
}

// baseline measures the model without the operator, but with all that surrounds so many copies of it.
func (b *bench) baseline(ctx context.Context, copies, threads int, heat bool) (Timing, error) {
	none := &Operator{Node: &pb.NodeProto{}}
	in, err := inputs(none)
	if err != nil {
		return Timing{}, err
	}
	batch := &dataplane.Batch{ID: 1, Items: 1, Portions: []dataplane.Portion{{Query: 1, Items: 1, Inputs: in}}}
	return b.run(ctx, copiesModel(none, copies, heat), threads, 1, batch, b.effort)
}

// call measures the cost of a call without operators: joining the inputs of queries, the runtime's own work, and memory
// for outputs.
func (b *bench) call(ctx context.Context, at *BatchGraph, items, threads int) (Timing, error) {
	batch, err := queries(at, items)
	if err != nil {
		return Timing{}, err
	}
	t, err := b.run(ctx, callModel(at), threads, items, batch, b.effort)
	if err != nil {
		return t, fmt.Errorf("a call %s: %w", callKey(at, threads), err)
	}
	return t, nil
}

// run writes a model and measures it without optimisation.
func (b *bench) run(ctx context.Context, m *pb.ModelProto, threads, limit int, batch *dataplane.Batch,
	e Effort) (_ Timing, err error) {
	path := filepath.Join(b.dir, "alone.onnx")
	if err := onnxmodel.Write(path, m); err != nil {
		return Timing{}, err
	}
	return measure(ctx, b.rt, path, threads, limit, true, batch, e)
}

func measure(ctx context.Context, rt Runtime, path string, threads, limit int, asIs bool, batch *dataplane.Batch,
	e Effort) (_ Timing, err error) {
	r, err := rt.Open(ctx, path, threads, limit, asIs)
	if err != nil {
		return Timing{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	times, err := repeat(ctx, r, batch, e)
	if err != nil {
		return Timing{}, err
	}
	return timing(times), nil
}
