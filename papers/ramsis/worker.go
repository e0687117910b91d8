package ramsis

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Worker is the decision problem of one worker among several like it (§4).
type Worker struct {
	SLO     time.Duration
	Workers int // that share the arrivals, >= 1
	// Arrivals at all of them together.
	Arrivals Arrivals
	Models   []Model
	// MaxQueue is the longest queue that has choices of its own in the policy, N_w; at least 1.
	MaxQueue int
	// Levels is D of the fixed-length discretisation (§4.2.2): slacks are multiples of SLO/D. 0 takes one level for
	// every latency that a batch can have (model-based discretisation, §4.2.1).
	Levels int
	// Variable lets a batch leave queries behind (variable batching, §4.3.2). Otherwise a batch is all queries that
	// wait.
	Variable bool
	// Balance says how arrivals are shared among workers.
	Balance Balance
	// Drop gives up queries that cannot be in time any more. Otherwise they are served late (§4.3.1).
	Drop bool
	// Unpromised leaves the promise of a policy out, which takes most of the time to make one.
	Unpromised bool
}

// Model is a variant that the worker has loaded.
type Model struct {
	Variant  serving.VariantID
	Accuracy float64
	// Latency is by batch size less one and never falls. A model takes no more queries at once than there are entries.
	Latency []time.Duration
}

// Balance is how arrivals are shared among workers.
type Balance uint8

const (
	// RoundRobin gives each worker every K-th arrival (§4.4.2).
	RoundRobin Balance = iota
	// ShortestQueue gives each arrival to the shortest queue, in the approximation of App. I.
	ShortestQueue
)

// String returns the name of the router with this rule.
func (b Balance) String() string {
	if b == ShortestQueue {
		return "shortestqueue"
	}
	return "roundrobin"
}

func (w *Worker) validate() error {
	switch {
	case w.SLO <= 0:
		return fmt.Errorf("ramsis: the objective is %v, want more than 0", w.SLO)
	case w.Workers < 1:
		return fmt.Errorf("ramsis: %d workers, want at least 1", w.Workers)
	case w.MaxQueue < 1:
		return fmt.Errorf("ramsis: queues of %d, want at least 1", w.MaxQueue)
	case w.Arrivals == nil || !(w.Arrivals.Rate() > 0):
		return errors.New("ramsis: arrivals at a rate above 0 are required")
	case len(w.Models) == 0:
		return errors.New("ramsis: no model")
	}
	for _, m := range w.Models {
		if len(m.Latency) == 0 || m.Latency[0] <= 0 || !slices.IsSorted(m.Latency) {
			return fmt.Errorf("ramsis: variant %d: latencies %v, want them positive and not to fall with the batch",
				m.Variant, m.Latency)
		}
	}
	if _, poisson := w.Arrivals.(Poisson); w.Balance == ShortestQueue && !poisson {
		return errors.New("ramsis: the shortest queue is known for Poisson arrivals only (App. I)")
	}
	return nil
}

// latency returns the time of a batch of b; 0 when the model takes no such batch.
func (m *Model) latency(b int) time.Duration {
	if b > len(m.Latency) {
		return 0
	}
	return m.Latency[b-1]
}

// bestRate returns the queries/s of the model with its best batches of at most within; 0 when none is.
func (m *Model) bestRate(within time.Duration) float64 {
	most := 0.0
	for b, l := range m.Latency {
		if l <= within {
			most = max(most, float64(b+1)/seconds(l))
		}
	}
	return most
}

// Pareto returns the models for which no other is as accurate and in no batch slower (§4.3.3), by latency of one query.
// The paper's front compares one latency of each model (Figure 3). models is not changed; the results share its
// latencies.
func Pareto(models []Model) []Model {
	var out []Model
	for i := range models {
		beaten := slices.ContainsFunc(models, func(o Model) bool {
			same := o.Accuracy == models[i].Accuracy && slices.Equal(o.Latency, models[i].Latency)
			if same {
				return o.Variant < models[i].Variant
			}
			if o.Accuracy < models[i].Accuracy || len(o.Latency) < len(models[i].Latency) {
				return false
			}
			for b, l := range models[i].Latency {
				if o.Latency[b] > l {
					return false
				}
			}
			return true
		})
		if !beaten {
			out = append(out, models[i])
		}
	}
	slices.SortStableFunc(out, func(a, b Model) int { return int(a.Latency[0] - b.Latency[0]) })
	return out
}

// slacks returns the time lengths T_w (§4.2), ascending from 0 to the objective.
func (w *Worker) slacks() []time.Duration {
	out := []time.Duration{0, w.SLO}
	if w.Levels > 0 {
		for j := 1; j < w.Levels; j++ {
			out = append(out, w.SLO*time.Duration(j)/time.Duration(w.Levels))
		}
	} else {
		for _, m := range w.Models {
			for b, l := range m.Latency {
				if l < w.SLO && b < w.MaxQueue {
					out = append(out, l)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
