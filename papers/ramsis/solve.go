package ramsis

import (
	"cmp"
	"context"
	"slices"

	"github.com/sluice-serving/sluice/internal/algo/mdp"
	"github.com/sluice-serving/sluice/policy/plan"
)

// overloadTolerance is the part of the served load by which arrivals may exceed it: a larger excess is an overload, a
// smaller one is queries lost in rare bursts.
const overloadTolerance = 1e-4

// lookahead is the number of decisions that the policy looks ahead. §4.1 iterates until values converge, which they
// never do without a discount. The authors' code makes 100 sweeps and takes the action that one more would take.
const lookahead = 101

// Solve makes the policy of a worker with its promise. ctx ends it between two steps. It fails when the worker is not
// valid.
func (w *Worker) Solve(ctx context.Context) (*plan.Policy, error) {
	p, best, err := w.solve(ctx)
	if err != nil {
		return nil, err
	}
	out := &plan.Policy{
		Rate: w.Arrivals.Rate(), Slacks: p.levels, Choices: make([]plan.Choice, w.MaxQueue*len(p.levels)),
	}
	for j := range p.levels {
		for n := 1; n <= w.MaxQueue; n++ {
			a := p.actions[best[p.state(n, j)]]
			if a.model < 0 {
				// The engine gives the query up by itself, or has a reason not to; then it is served as soon as
				// possible.
				m, b := p.fastest(n)
				a = action{model: int32(m), batch: int32(b)}
			}
			out.Choices[(n-1)*len(p.levels)+j] = plan.Choice{Variant: w.Models[a.model].Variant, Queries: a.batch}
		}
	}
	if out.Promise.Violation = -1; !w.Unpromised {
		out.Promise = p.promise(best)
	}
	return out, nil
}

func (w *Worker) solve(ctx context.Context) (*problem, mdp.Policy, error) {
	if err := w.validate(); err != nil {
		return nil, nil, err
	}
	p := newProblem(w)
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	best, _ := p.FiniteHorizon(lookahead)
	return p, best, ctx.Err()
}

// WholeBatches returns the share of decisions that take all queries that wait (§4.3.2), of all decisions and of those
// with more than one waiting.
func (w *Worker) WholeBatches(ctx context.Context) (all, several float64, err error) {
	p, best, err := w.solve(ctx)
	if err != nil {
		return 0, 0, err
	}
	more := 0.0
	for s, x := range p.stationary(best) {
		n := w.MaxQueue
		if s < p.overflow() {
			n = s%w.MaxQueue + 1
		}
		whole := 0.0
		if int(p.actions[best[s]].batch) == n {
			whole = x
		}
		all += whole
		if n > 1 {
			several, more = several+whole, more+x
		}
	}
	return all, several / more, nil
}

// stationary returns how often a policy is in each state.
func (p *problem) stationary(policy mdp.Policy) []float64 {
	return p.Stationary(policy, p.state(1, len(p.levels)-1), 1e-10, 20000)
}

// promise computes the guarantees of a policy (§5.1). Every query counts the same: a decision weighs as many as it
// serves.
//
// The share of late queries is an upper bound: a decision that misses the first deadline counts as missing all of them,
// and slack is rounded down. The accuracy is a lower bound, over all queries, in time or not. The paper leaves out
// decisions that miss, but other queries of their batch may be in time, on the fastest variant.
func (p *problem) promise(policy mdp.Policy) plan.Promise {
	share := p.stationary(policy)
	type served struct{ accuracy, queries float64 }
	var by []served
	var out plan.Promise
	all, answered, busy := 0.0, 0.0, 0.0
	for s, x := range share {
		a := &p.actions[policy[s]]
		n := x * float64(a.batch)
		all += n
		busy += x * seconds(p.latency(a))
		if !a.inTime {
			out.Violation += n
		}
		if a.model >= 0 {
			answered += n
			acc := p.Models[a.model].Accuracy
			out.Accuracy += n * acc
			by = append(by, served{acc, n})
		}
	}
	// A worker's queries come at its share of the rate and keep it busy for a share of the time. If more come than are
	// served, the model loses queries beyond its longest queue. A real queue grows, and in the long run all queries are
	// late.
	out.Utilization = busy * p.Arrivals.Rate() / float64(p.Workers) / all
	out.Violation /= all
	if p.Balance == RoundRobin && out.Utilization > 1+overloadTolerance { // by App. I fewer come to a long queue
		out.Violation = 1
	}
	out.Utilization = min(out.Utilization, 1)
	if answered <= 0 {
		return out
	}
	out.Accuracy /= answered
	slices.SortFunc(by, func(a, b served) int { return cmp.Compare(a.accuracy, b.accuracy) })
	passed := 0.0
	for _, x := range by {
		if passed <= 0.01*answered {
			out.Worst99Accuracy = x.accuracy
		}
		if passed <= 0.5*answered {
			out.MedianAccuracy = x.accuracy
		}
		passed += x.queries
	}
	return out
}
