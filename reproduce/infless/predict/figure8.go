// Package predict is Figure 8 of INFless, how well latency is predicted from the times of operators, on networks that
// ONNX Runtime runs here.
package predict

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/sluice-serving/sluice/measure/profiler"
	"github.com/sluice-serving/sluice/measure/profiler/operators"
	"github.com/sluice-serving/sluice/models/onnxmodel/zoo"
	"github.com/sluice-serving/sluice/reproduce"
)

// The configurations: batch sizes as the paper has them, powers of two, on as many threads as small machines have.
var (
	batches = []int{1, 2, 4, 8, 16, 32}
	threads = []int{1, 2}
)

// Doc says what the figure shows.
const Doc = "predicted against measured latency of twelve ONNX networks, every configuration; of this machine"

// Prepare has the figure measured and said. It measures times, and is for a machine that does nothing else: it is one
// task, because networks that are measured at once measure each other.
func Prepare(run *reproduce.Runner) error {
	if run.Runtime == nil {
		return errors.New("figure 8 runs networks on ONNX Runtime, which it was not given")
	}
	all := run.AddTask("predicting networks", 1, 1, func(ctx context.Context, _ uint64) (any, error) {
		rt, err := run.Runtime()
		if err != nil {
			return nil, err
		}
		return Measure(ctx, rt, zoo.Networks(), run.Progress)
	})
	run.Report(func(o *reproduce.Outcome) error {
		if err := addAuthors(o); err != nil {
			return err
		}
		addOurs(o, all.Results[0].([]Network))
		return nil
	})
	return nil
}

// Network is what came out for one network.
type Network struct {
	Name  string
	Pairs []Pair
}

// Pair is a prediction and what was measured, in microseconds.
type Pair struct {
	operators.Prediction
	Whole operators.Timing
	// Written is predicted from the graph as it lies in the file, one at a time: what the runtime's fusion is worth.
	Written float64
}

// Measure predicts networks and measures them whole, before and after, with the less disturbed of both.
func Measure(ctx context.Context, rt operators.Runtime, networks []zoo.Network, progress func(float64, string)) (
	_ []Network, err error) {
	dir, err := os.MkdirTemp("", "sluice-figure8-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	store, err := operators.Open("", profiler.Host{})
	if err != nil {
		return nil, err
	}
	var out []Network
	for i, n := range networks {
		path := filepath.Join(dir, n.Name+".onnx")
		if err := n.Build().Write(path); err != nil {
			return nil, err
		}
		tell := func(done, total int, what string) {
			if progress != nil {
				progress((float64(i)+float64(done)/float64(max(total, 1)))/float64(len(networks)), n.Name+": "+what)
			}
		}
		pairs, err := measure(ctx, operators.Config{Runtime: rt, Store: store, Progress: tell}, path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.Name, err)
		}
		out = append(out, Network{n.Name, pairs})
	}
	return out, nil
}

func measure(ctx context.Context, c operators.Config, path string) ([]Pair, error) {
	whole := func() (out []operators.Timing, err error) {
		for _, b := range batches {
			for _, n := range threads {
				t, err := operators.Whole(ctx, c.Runtime, path, b, n, operators.WholeEffort)
				if err != nil {
					return nil, err
				}
				out = append(out, t)
			}
		}
		return out, nil
	}
	before, err := whole()
	if err != nil {
		return nil, err
	}
	predicted, err := operators.Predict(ctx, c, path, batches, threads)
	if err != nil {
		return nil, err
	}
	c.AsWritten, c.Rounds = true, 1 // far enough off not to need care
	written, err := operators.Predict(ctx, c, path, batches, threads)
	if err != nil {
		return nil, err
	}
	after, err := whole()
	if err != nil {
		return nil, err
	}
	pairs := make([]Pair, len(predicted.Predictions))
	for i, p := range predicted.Predictions {
		pairs[i] = Pair{p, operators.Quieter(before[i], after[i]), written.Predictions[i].Sequential.Typical}
	}
	return pairs, nil
}

// addOurs gives the errors of every network, and of all configurations together.
func addOurs(o *reproduce.Outcome, networks []Network) {
	var all []Pair
	for _, n := range networks {
		all = append(all, n.Pairs...)
	}
	sets := []string{"1 and 2"}
	for _, n := range threads {
		sets = append(sets, strconv.Itoa(n))
	}
	for i, set := range sets {
		of := func(p *Pair) bool { return i == 0 || p.Threads == threads[i-1] }
		for _, n := range append(slices.Clone(networks), Network{"all networks", all}) {
			addNetwork(o, n, set, of)
		}
	}
	o.Notes = append(o.Notes,
		"The error is of the prediction without the offset, over all configurations, none left out. Branches at "+
			"once: the paper's rule, the longest branch counts, which is wrong for a runtime that runs an operator "+
			"at a time. "+
			"As written: the graph of the file instead of the one that the runtime makes of it.",
		"On the safe side: the share of configurations that take no longer than predicted with the offset of 10 %.")
}

// addNetwork gives the errors of a network over some of its configurations.
func addNetwork(o *reproduce.Outcome, n Network, set string, of func(*Pair) bool) {
	var err, parallel, written, safe []float64
	for i := range n.Pairs {
		p := &n.Pairs[i]
		if !of(p) {
			continue
		}
		off := func(us float64) float64 { return 100 * math.Abs(us/p.Whole.Typical-1) }
		err, parallel, written = append(err, off(p.Sequential.Typical)), append(parallel, off(p.Parallel.Typical)),
			append(written, off(p.Written))
		side := 0.0
		if p.Safe() >= p.Whole.Typical {
			side = 100
		}
		safe = append(safe, side)
	}
	if len(err) == 0 {
		return
	}
	at := map[string]string{"measured": "here", "threads": set}
	o.AddRow(row(n.Name, "mean error", at), mean(err))
	o.AddRow(row(n.Name, "worst error", at), slices.Max(err))
	o.AddRow(row(n.Name, "mean error, branches at once", at), mean(parallel))
	o.AddRow(row(n.Name, "mean error, as written", at), mean(written))
	o.AddRow(row(n.Name, "on the safe side", at), mean(safe))
}
