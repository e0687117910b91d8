package operators

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/dag"
)

// Offset is the relative addition to a prediction that keeps an error from making queries late (INFless §3.3).
const Offset = 0.10

// Config says how to predict. Runtime and Store are required.
type Config struct {
	Runtime Runtime
	Store   *Store
	Effort  Effort // for one operator in one round; zero means DefaultEffort
	// Rounds is how often every operator is measured. Rounds are apart in time, so that a disturbance of the machine
	// does not remain in the store. 0 means 2.
	Rounds int
	// AsWritten predicts from the graph in the file instead of the one that the runtime makes of it. It shows the value
	// of fusion and is no prediction of the runtime.
	AsWritten bool
	// Progress is called before every measurement of an operator. It may be nil.
	Progress func(done, total int, what string)
}

// Prediction is the predicted time of one model at one batch size with a number of threads, without the offset.
type Prediction struct {
	Batch   int `json:"batch"`
	Threads int `json:"threads"`
	// Sequential is for a runtime that runs one operator at a time, as ONNX Runtime does by default.
	Sequential Timing `json:"sequential"`
	// Parallel is the paper's rule: branches run at the same time, and the longest counts.
	Parallel Timing `json:"parallel"`
	// Call is the part of both that belongs to no operator.
	Call Timing `json:"call"`
	// Operators is the number of operators in the graph that the runtime executes, New the number of those that had to
	// be measured.
	Operators int `json:"operators"`
	New       int `json:"new"`
}

// Forecast has the predictions for a model.
type Forecast struct {
	// Load is how long the runtime took to make its graph. It does so whenever it loads the model.
	Load        time.Duration
	Predictions []Prediction
}

// Predict returns predictions for every batch size with every number of threads, by batch size and then by threads. It
// measures operators that the store lacks, and saves them also when it fails or ctx ends.
func Predict(ctx context.Context, c Config, model string, batches, threads []int) (_ *Forecast, err error) {
	dir, err := os.MkdirTemp("", "sluice-operators-")
	if err != nil {
		return nil, fmt.Errorf("operators: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if c.Effort == (Effort{}) {
		c.Effort = DefaultEffort
	}
	c.Rounds = cmp.Or(c.Rounds, 2)
	p := &predictor{Config: c, bench: &bench{rt: c.Runtime, dir: dir, effort: c.Effort, baselines: map[int]Timing{}}}
	fast := filepath.Join(dir, "fast.onnx")
	start := time.Now()
	if err := c.Runtime.Optimize(model, fast); err != nil {
		return nil, err
	}
	out := &Forecast{Load: time.Since(start)}
	if c.AsWritten {
		fast = model
	}
	g, err := Read(fast)
	if err != nil {
		return nil, err
	}
	tree, err := g.Fold()
	if err != nil {
		return nil, err
	}
	var requests []request
	for _, b := range batches {
		at, err := g.Batch(b)
		if err != nil {
			return nil, err
		}
		for _, n := range threads {
			requests = append(requests, request{at, b, n})
		}
	}
	fresh, err := p.measureMissing(ctx, requests)
	if err != nil {
		return nil, err
	}
	for i, w := range requests {
		x := p.combine(w, tree)
		x.New = fresh[i]
		out.Predictions = append(out.Predictions, x)
	}
	return out, nil
}

// request is one prediction to make.
type request struct {
	at      *BatchGraph
	batch   int
	threads int
}

type predictor struct {
	Config
	bench *bench
}

// measureMissing measures all operators that the store lacks. It returns how many these were, for each request.
func (p *predictor) measureMissing(ctx context.Context, requests []request) (fresh []int, err error) {
	type job struct {
		key string
		run func() (Timing, error)
	}
	var jobs []job
	fresh = make([]int, len(requests))
	asked := make(map[string]bool)
	ask := func(i int, key string, run func() (Timing, error)) {
		if _, known := p.Store.Get(key); !known && !asked[key] {
			asked[key] = true
			fresh[i]++
			jobs = append(jobs, job{key, run})
		}
	}
	for i, w := range requests {
		ask(i, callKey(w.at, w.threads), func() (Timing, error) { return p.bench.call(ctx, w.at, w.batch, w.threads) })
		for k := range w.at.Operators {
			o := &w.at.Operators[k]
			ask(i, o.Key(w.threads), func() (Timing, error) { return p.bench.operator(ctx, o, w.threads) })
		}
	}
	defer func() { err = errors.Join(err, p.Store.Save()) }()
	for i := range len(jobs) * p.Rounds {
		j := jobs[i%len(jobs)]
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if p.Progress != nil {
			p.Progress(i, len(jobs)*p.Rounds, j.key)
		}
		t, err := j.run()
		if err != nil {
			return nil, fmt.Errorf("operators: %w", err)
		}
		if before, ok := p.Store.Get(j.key); ok {
			t = Quieter(before, t)
		}
		p.Store.Put(j.key, t)
	}
	return fresh, nil
}

// combine adds up the stored times.
func (p *predictor) combine(w request, tree *dag.Tree) Prediction {
	best, typical := make([]float64, len(w.at.Operators)), make([]float64, len(w.at.Operators))
	out := Prediction{Batch: w.batch, Threads: w.threads, Operators: len(w.at.Operators)}
	out.Call, _ = p.Store.Get(callKey(w.at, w.threads))
	runs := out.Call.Runs
	for i := range w.at.Operators {
		t, _ := p.Store.Get(w.at.Operators[i].Key(w.threads))
		best[i], typical[i], runs = t.Best, t.Typical, min(runs, t.Runs)
	}
	out.Sequential = Timing{out.Call.Best + tree.Sequential(best), out.Call.Typical + tree.Sequential(typical), runs}
	out.Parallel = Timing{out.Call.Best + tree.Parallel(best), out.Call.Typical + tree.Parallel(typical), runs}
	return out
}
