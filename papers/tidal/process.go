package tidal

import "math"

// process is the decision process of a pool over its position (plan.ValueFunction). A batch of b queries brings b
// accuracies. It moves the position up by the queries that arrive while a worker's share of the pool is in use. It
// happens once every b arrivals, whose interarrival times move the position down. Idle workers, at positions below 0,
// do not work anything off. If a position above 0 leaves the first query of the batch too little slack, its queries are
// late.
//
// It is a semi-Markov process that counts queries instead of time: averages are per query. Pooling reduces the joint
// state of all workers to the position. Among many workers one is always about to be free, so it does not matter when
// each is, only how much work has been started.
type process struct {
	pool           *Pool
	actions        []action
	cheapest       int     // index of the action that takes the least worker time per query
	residual       float64 // assumed mean time in s that a busy worker's batch has left
	queriesPerStep float64 // queries between neighbouring positions
	zero           int     // index of position 0
	// number of positions
	n           int
	latePenalty float64 // cost of a late query, in accuracy
	// by position, index into actions
	policy []int
	// relative value by position
	value []float64
	// mean reward per query
	gain float64
	// What the policy leads to: the share of late queries, the worker time in s per query, and the mean time in s that
	// a busy worker's batch has left.
	lateShare, workerTime, meanResidual float64
}

// gapNodes is the number of equally likely values that stand for a span of interarrival times.
const gapNodes = 12

// arrivalDensity is how much closer than on average the queries of a batch arrive: batches are made of queries that
// arrive close together.
const arrivalDensity = 0.7

// Positions are one query apart as long as their number is between these.
const (
	minPositions = 256
	maxPositions = 4096
)

// newProcess makes the process for a residual time in s and a penalty. Its first policy is the cheapest action
// everywhere.
func newProcess(p *Pool, residual, late float64) *process {
	x := &process{pool: p, actions: p.actions(), residual: residual, latePenalty: late}
	span := p.Rate * (residual + p.SLO.Seconds())
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
	x.zero = int(p.Rate * residual / x.queriesPerStep)
	x.n = x.zero + int(p.Rate*p.SLO.Seconds()/x.queriesPerStep) + 1
	x.policy = make([]int, x.n)
	x.value = make([]float64, x.n)
	for s := range x.policy {
		x.policy[s] = x.cheapest
	}
	return x
}

// startFrom takes the policy and gain of a process that differs little: at every position the action there.
func (x *process) startFrom(o *process) {
	x.gain = o.gain
	for s := range x.policy {
		at := o.zero + int(x.position(s)/o.queriesPerStep)
		x.policy[s] = o.policy[min(max(at, 0), o.n-1)]
	}
}

// erlangMeans returns gapNodes equally likely values for the sum of n exponential variables of mean 1: its quantiles by
// bisection, scaled to the right mean.
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

// position returns the position at index s, in queries.
func (x *process) position(s int) float64 { return float64(s-x.zero) * x.queriesPerStep }

// inTime reports whether all queries of a batch are in time. The first has waited for as long as its followers took to
// arrive, or for as long as all waiting queries did.
func (x *process) inTime(s int, a *action) bool {
	waited := max(x.position(s), arrivalDensity*(a.size-1)) / x.pool.Rate
	return waited+a.latency <= x.pool.SLO.Seconds()
}

// reward returns what a batch brings at index s, in accuracies.
func (x *process) reward(s int, a *action) float64 {
	if x.inTime(s, a) {
		return a.size * a.accuracy
	}
	return -a.size * x.latePenalty
}

// busy returns the share of busy workers at index s, which is the speed at which work is done.
func (x *process) busy(s int) float64 {
	return max(1+min(0, x.position(s))/(x.pool.Rate*x.residual), 0)
}

// next returns, as a fractional index, where an action leads with the k-th span of interarrival times.
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

// expectedValue returns the mean value of where an action leads, linear between positions.
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

// discountHorizon is the number of queries after which the future counts by 1/e. So little discounting changes no
// decision, and it lets policy iteration pass through policies with several recurrent classes, whose averages would not
// exist.
const discountHorizon = 1e8

// evaluate computes the values of the policy, its gain, and the share of late queries, worker time and residual that it
// leads to. The system of equations is banded because no step leads far.
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
	origin := value[x.zero]
	x.gain += origin / discountHorizon
	for s := range value {
		x.value[s] = value[s] - origin
	}
	x.lateShare = late[x.zero] / discountHorizon
	x.workerTime = takes[x.zero] / discountHorizon
	x.meanResidual = square[x.zero] / takes[x.zero] / 2
}

// improve takes in every state the best action by the values, and reports whether that changed anything.
func (x *process) improve() bool {
	changed := false
	for s := range x.policy {
		busy := x.busy(s)
		total := func(i int) float64 {
			a := &x.actions[i]
			return x.reward(s, a) - x.gain*a.discountedQueries + a.discount*x.expectedValue(s, a, busy)
		}
		best := total(x.policy[s])
		for i := range x.actions {
			// Only a gain beyond rounding counts: else policies of equal value would alternate for ever.
			if v := total(i); v > best+1e-9*(1+math.Abs(best)) {
				best, x.policy[s], changed = v, i, true
			}
		}
	}
	return changed
}

// maxIterations bounds policy iteration, which takes about ten.
const maxIterations = 100

// policyIteration finds the best policy (Howard 1960).
func (x *process) policyIteration() {
	for range maxIterations {
		x.evaluate()
		if !x.improve() {
			return
		}
	}
}
