// Package predict reproduces Figure 8 of INFless: how well the latency of a network is predicted from the times of its
// operators. The networks run on ONNX Runtime, on this machine.
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

	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel/zoo"
	"github.com/sluice-serving/sluice/papers/infless/operators"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// The configurations: the paper's batch sizes, which are powers of two, on as many threads as small machines have.
var (
	batches = []int{1, 2, 4, 8, 16, 32}
	threads = []int{1, 2}
)

// Doc says what the figure shows, in one line.
const Doc = "predicted against measured latency of twelve ONNX networks, every configuration; of this machine"

// Prepare adds the figure to a runner. It measures times, so nothing else should run on the machine. All networks are
// one task, because networks measured at the same time would slow each other down. It fails when the request has no
// runtime.
func Prepare(run *reproduce.Runner) error {
	if run.Runtime == nil {
		return errors.New("figure 8 runs networks on ONNX Runtime, which it was not given")
	}
	all := reproduce.Add(run, "predicting networks", 1, 1, func(ctx context.Context, _ uint64) ([]Network, error) {
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
		addOurs(o, all.First())
		return nil
	})
	return nil
}

// Network is the result for one network, a pair for each configuration.
type Network struct {
	Name  string
	Pairs []Pair
}

// Pair is a prediction and a measurement of one configuration, in microseconds.
type Pair struct {
	operators.Prediction
	Whole operators.Timing
	// Written is the prediction from the graph in the file, without the runtime's fusion of operators.
	Written float64
}

// Measure predicts the latency of networks and measures it. Each network is measured before and after its prediction,
// and the measurement with less disturbance counts. It writes the networks into a temporary folder. progress may be
// nil.
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
	c.AsWritten, c.Rounds = true, 1 // its error is large, so one round is exact enough
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

// addOurs adds the errors of every network and of all networks together, by number of threads.
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

// addNetwork adds the errors of a network over the configurations for which of returns true.
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
