package tidal

import (
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Model is a variant as a worker of the pool runs it.
type Model struct {
	Variant  serving.VariantID
	Accuracy float64
	Latency  []time.Duration // of batches of 1, 2, ..
}

// Pool is what a price is made for: Poisson arrivals at a queue that workers of one type share.
type Pool struct {
	Rate    float64 // queries/s
	Workers int
	SLO     time.Duration
	Models  []Model
	// Late is the share of queries that may be late.
	LateShare float64
}

// action is a batch that can be in time, in seconds and accuracy per query.
type action struct {
	variant           serving.VariantID
	size              float64
	latency           float64
	accuracy          float64
	discount          float64   // of what comes after it
	discountedQueries float64   // its queries, those later in it discounted
	gaps              []float64 // equally likely numbers of mean gaps between arrivals that size of them take, in positions
	workAdded         float64   // positions by which the work given out moves the pool
}

// process is the decision process of a pool over its position (plan.Price): a batch of b queries brings b accuracies,
// moves the position up by the queries that arrive while a worker's share of the pool is taken, and happens once every
// b arrivals, whose gaps move it down. Idle workers, at positions below 0, do not work anything off. Where positions
// above 0 leave the first of the batch too little slack, its queries are late.
//
// It is a semi-Markov process that counts queries in the place of time: the average is over queries. Its state is what
// pooling leaves of the joint one: among many workers there is always one that is about to be free, so that it does not
// matter when each is, only how much work has been given out.
type process struct {
	pool           *Pool
	actions        []action
	cheapest       int     // the action that takes the least of a worker for each query
	residual       float64 // s: what a busy worker has left of its batch, on average
	queriesPerStep float64 // queries between positions
	zero           int     // index of position 0
	n              int
	latePenalty    float64 // what a late query costs, in accuracy
	policy         []int
	value          []float64
	gain           float64
	// What the policy leads to, per query: late ones, worker time, and the mean time left of a busy worker's batch.
	lateShare, workerTime, meanResidual float64
}

// nodes are the equally likely values that stand for the gaps between arrivals.
const gapNodes = 12

// dense says how much closer than on average the queries of a batch arrive: batches are made of those that do.
const arrivalDensity = 0.7

// The positions that are told apart: one query each while that is between these numbers.
const (
	minPositions = 256
	maxPositions = 4096
)

func (p *Pool) actions() []action {
	var out []action
	for _, m := range p.Models {
		for b, l := range m.Latency {
			if l <= p.SLO {
				out = append(out, action{
					variant: m.Variant, size: float64(b + 1), latency: l.Seconds(), accuracy: m.Accuracy,
				})
			}
		}
	}
	// Of two of one size, one that takes longer and is no more accurate is of no use.
	return slices.DeleteFunc(slices.Clone(out), func(a action) bool {
		return slices.ContainsFunc(out, func(b action) bool {
			return a.size == b.size && b.latency <= a.latency && b.accuracy >= a.accuracy &&
				(b.latency < a.latency || b.accuracy > a.accuracy || b.variant < a.variant)
		})
	})
}

func newProcess(p *Pool, rest, late float64) *process {
	x := &process{pool: p, actions: p.actions(), residual: rest, latePenalty: late}
	span := p.Rate * (rest + p.SLO.Seconds())
	x.queriesPerStep = span / min(max(span, minPositions), maxPositions)
	bySize := make(map[float64][]float64)
	for i := range x.actions {
		a := &x.actions[i]
		if bySize[a.size] == nil {
			down := erlangMeans(int(a.size))
			for k := range down {
				down[k] /= x.queriesPerStep
			}
			bySize[a.size] = down
		}
		a.gaps, a.workAdded = bySize[a.size], p.Rate*a.latency/float64(p.Workers)/x.queriesPerStep
		a.discount = math.Exp(-a.size / discountHorizon)
		a.discountedQueries = -discountHorizon * math.Expm1(-a.size/discountHorizon)
		if a.latency/a.size < x.actions[x.cheapest].latency/x.actions[x.cheapest].size {
			x.cheapest = i
		}
	}
	x.zero = int(p.Rate * rest / x.queriesPerStep)
	x.n = x.zero + int(p.Rate*p.SLO.Seconds()/x.queriesPerStep) + 1
	x.policy = make([]int, x.n)
	x.value = make([]float64, x.n)
	for s := range x.policy {
		x.policy[s] = x.cheapest
	}
	return x
}

// follow begins with the policy of a process that differs little: at every position what it does there.
func (x *process) startFrom(o *process) {
	x.gain = o.gain
	for s := range x.policy {
		at := o.zero + int(x.position(s)/o.queriesPerStep)
		x.policy[s] = o.policy[min(max(at, 0), o.n-1)]
	}
}

// gaps returns the means of equally likely parts, nearly, of the sum of n exponential variables of mean 1.
func erlangMeans(n int) []float64 {
	out := make([]float64, gapNodes)
	sum := 0.0
	for i := range out {
		want := (float64(i) + 0.5) / gapNodes
		low, high := 0.0, 6*float64(n)+20
		for high-low > 1e-9*high {
			mid := (low + high) / 2
			term := math.Exp(-mid)
			rest := term
			for k := 1; k < n; k++ {
				term *= mid / float64(k)
				rest += term
			}
			if 1-rest < want {
				low = mid
			} else {
				high = mid
			}
		}
		out[i] = low
		sum += low
	}
	for i := range out {
		out[i] *= float64(n) * gapNodes / sum
	}
	return out
}

func (x *process) position(s int) float64 { return float64(s-x.zero) * x.queriesPerStep }

// timely tells whether all queries of a batch are in time. The first has waited as long as its followers took to
// arrive, or as long as all that waits.
func (x *process) inTime(s int, a *action) bool {
	waited := max(x.position(s), arrivalDensity*(a.size-1)) / x.pool.Rate
	return waited+a.latency <= x.pool.SLO.Seconds()
}

func (x *process) reward(s int, a *action) float64 {
	if x.inTime(s, a) {
		return a.size * a.accuracy
	}
	return -a.size * x.latePenalty
}

// busy is the share of the workers that are, which is how fast work is done.
func (x *process) busy(s int) float64 {
	return max(1+min(0, x.position(s))/(x.pool.Rate*x.residual), 0)
}

// next returns, in units from position 0 of the table, where the k-th value of the gaps leads to.
func (x *process) next(s int, a *action, k int, busy float64) float64 {
	y := float64(s) + a.workAdded - busy*a.gaps[k]
	if y < 0 {
		return 0
	}
	if top := float64(x.n - 1); y > top {
		return top
	}
	return y
}

// after is the expected value of where an action leads to.
func (x *process) expectedValue(s int, a *action, busy float64) float64 {
	sum := 0.0
	for k := range a.gaps {
		y := x.next(s, a, k, busy)
		i := int(y)
		if i > x.n-2 {
			i = x.n - 2
		}
		sum += x.value[i] + (y-float64(i))*(x.value[i+1]-x.value[i])
	}
	return sum / gapNodes
}

// horizon is after how many queries what comes counts a third only. Discounting so little changes nothing that matters
// and lets policy iteration pass through policies that keep a pool at several places, whose averages would not exist.
const discountHorizon = 1e8

// evaluate finds the values of the policy and what it leads to: a banded system, since no step leads far.
func (x *process) evaluate() {
	below, above := 1, 1
	for s, i := range x.policy {
		a := &x.actions[i]
		busy := x.busy(s)
		below = max(below, s-int(x.next(s, a, gapNodes-1, busy)))
		above = max(above, int(x.next(s, a, 0, busy))+1-s)
	}
	m := newBandMatrix(x.n, below, above)
	value, late, takes, square := make([]float64, x.n), make([]float64, x.n), make([]float64, x.n), make([]float64, x.n)
	for s, i := range x.policy {
		a := &x.actions[i]
		value[s] = x.reward(s, a) - x.gain*a.discountedQueries
		takes[s], square[s] = a.latency, a.latency*a.latency
		if !x.inTime(s, a) {
			late[s] = a.size
		}
		row := m.row(s)
		row[below] = 1
		busy := x.busy(s)
		for k := range gapNodes {
			y := x.next(s, a, k, busy)
			c := min(int(y), x.n-2)
			row[c-s+below] -= a.discount * (1 - (y - float64(c))) / gapNodes
			row[c+1-s+below] -= a.discount * (y - float64(c)) / gapNodes
		}
	}
	m.solve(value, late, takes, square)
	home := value[x.zero]
	x.gain += home / discountHorizon
	for s := range value {
		x.value[s] = value[s] - home
	}
	x.lateShare = late[x.zero] / discountHorizon
	x.workerTime = takes[x.zero] / discountHorizon
	x.meanResidual = square[x.zero] / takes[x.zero] / 2
}

// improve takes in every state the action that is best by the values, and reports whether that changed anything.
func (x *process) improve() bool {
	changed := false
	for s := range x.policy {
		busy := x.busy(s)
		worth := func(i int) float64 {
			a := &x.actions[i]
			return x.reward(s, a) - x.gain*a.discountedQueries + a.discount*x.expectedValue(s, a, busy)
		}
		best := worth(x.policy[s])
		for i := range x.actions {
			// A real gain, not a rounding: else equals would take turns for ever.
			if v := worth(i); v > best+1e-9*(1+math.Abs(best)) {
				best, x.policy[s], changed = v, i, true
			}
		}
	}
	return changed
}

// iterations that policy iteration gets; it takes about ten.
const maxIterations = 100

// iterate finds the best policy.
func (x *process) policyIteration() {
	for range maxIterations {
		x.evaluate()
		if !x.improve() {
			return
		}
	}
}
