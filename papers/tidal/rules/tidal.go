package rules

import (
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Tidal keeps queries in a central queue. For an idle instance it compares all batches that could be made of the
// waiting queries: variant, size, and which queries, the oldest that would still be in time. The rule is ours. It takes
// the batch with the largest
//
//	accuracy of its queries - average gain of a query
//	+ value of the pool's position after - value of the position now
//	+ expected loss of its queries if they were left for the next batch
//
// Positions and values are the plan's (plan.ValueFunction), for the load of the last half second. The last term uses
// the slack of every query. A query that is left behind has fewer variants to choose from, at the present price of a
// worker's time, which is the slope of the value. So young queries go to slow variants and old ones to fast ones.
//
// When no batch has a positive gain, queries wait to share a batch, provided that a running batch ends before they lose
// by waiting. A query that can no longer be in time is served when an instance has nothing better to do, or when there
// are more instances than needed. The rule ignores priorities and orders by deadlines. A query with several items or
// requirements of its own goes alone to an idle instance that can serve it.
type Tidal struct{ route.ByStage[tidalStage] }

// NewTidal returns the rule.
func NewTidal() *Tidal { return &Tidal{} }

// Name implements route.Router.
func (*Tidal) Name() string { return "tidal" }

// Needs implements route.Router.
func (*Tidal) Needs() plan.Sections { return plan.Values }

// Traits implements route.Router.
func (*Tidal) Traits() route.Traits { return route.Traits{Chooses: true} }

// meanWaitShare is the mean of the further wait of a query that is left behind, as a part of the objective. The wait is
// taken to be exponentially distributed. With few workers the mean is half the objective over their number. The tail
// matters: without it, queries that every batch skips for younger ones would count only when each of them needs a
// worker of its own.
const meanWaitShare = 1. / 15

// lateFactor multiplies the plan's late penalty for queries that are left behind. In the plan's process the penalty is
// an average; here it is the end of a query that could still be saved. It does not apply while the load is beyond the
// plan's rates, because some query must then be late.
const lateFactor = 10

// overload is the rate, relative to the highest of the plan, above which the load counts as beyond it. A rate over half
// a second is uncertain by as much.
const overload = 1.05

// tidalStage holds what a stage's plan and instances determine, and memory for each call.
type tidalStage struct {
	plan   *plan.Plan
	epoch  uint64
	built  bool
	values *plan.ValueFunctions
	app    serving.AppID
	slo    time.Duration

	batches  []poolBatch // that meet the objective, ascending by latency
	cheapest poolBatch   // takes least time of a worker per query, in time or not
	uniform  bool        // every instance has all variants warm

	meanWait time.Duration
	// best is, by number of batches that are fast enough, the most that one of them gains for a query.
	best    []float64
	expGain []float64      // by the same number: sum of steps of best, each times expLatency
	waiting []fleet.Ref    // queries that can be in time, latest deadline first
	ends    []serving.Time // their deadlines
	late    int            // number of queries that cannot be in time
	loss    []float64      // prefix sums of the losses of waiting when left behind
	idle    []*fleet.Instance
}

// poolBatch is a batch of a given size on one variant.
type poolBatch struct {
	variant    serving.VariantID
	size       int
	takes      time.Duration
	seconds    float64
	perQuery   float64 // s of a worker per query
	expLatency float64 // e to the power of latency/meanWait
	accuracy   float64
}

// Route implements route.Router. It costs time linear in the stage's instances and in the waiting queries.
func (o *Tidal) Route(v *route.View) {
	s := o.Of(v.Stage)
	if !s.built || s.epoch != v.Fleet.Epoch() || s.plan != v.Plan {
		s.build(v)
	}
	pool := s.observe(v)
	if len(s.idle) == 0 {
		return
	}
	waiting := v.Waiting()
	plain := waiting.Unconstrained() && waiting.SingleItems()
	if !plain || s.values == nil || len(s.batches) == 0 {
		s.serveSingly(v)
	}
	if s.values == nil || len(s.batches) == 0 {
		return
	}
	s.collect(v, plain)
	pool.setLoad(s, v.Monitor.Recent(v.Now, s.app), len(v.Instances()))
	for len(s.idle) > 0 {
		i := s.idle[0]
		if i.Active() < 0 {
			s.idle = slices.Delete(s.idle, 0, 1) // it runs only what is pinned to its variants
			continue
		}
		b, last := s.choose(v, &pool, i)
		if s.late > 0 && (b == nil || pool.position(len(s.waiting)) <= 0) {
			s.serveLate(v, &pool, i)
			continue
		}
		if b == nil && last < 0 {
			s.idle = slices.Delete(s.idle, 0, 1) // it has none of the variants that are fast enough; others may
			continue
		}
		if b == nil {
			return
		}
		s.idle = slices.Delete(s.idle, 0, 1)
		v.Choose(i, b.variant)
		for at := last; at > last-b.size; at-- {
			v.Assign(s.waiting[at], i)
		}
		s.waiting = slices.Delete(s.waiting, last-b.size+1, last+1)
		s.ends = slices.Delete(s.ends, last-b.size+1, last+1)
		pool.left += b.seconds
		pool.next = min(pool.next, v.Now.Add(b.takes))
	}
}

func (s *tidalStage) build(v *route.View) {
	spec := v.Fleet.Spec()
	*s = tidalStage{
		plan: v.Plan, epoch: v.Fleet.Epoch(), built: true, app: spec.Stages[v.Stage].App, batches: s.batches[:0],
		uniform: true,
		waiting: s.waiting, ends: s.ends, loss: s.loss, idle: s.idle,
	}
	s.slo = spec.Apps[s.app].SLO.Latency
	if v.Plan != nil {
		s.values = v.Plan.ValuesOf(v.Stage)
	}
	all := v.Instances()
	s.meanWait = time.Duration(max(float64(s.slo)*meanWaitShare, float64(s.slo)/2/float64(len(all))))
	seen := make(map[serving.VariantID]bool)
	for _, i := range all {
		for k := range i.Variants() {
			l := i.Variant(k)
			if !l.Usable() || seen[l.Variant] {
				continue
			}
			seen[l.Variant] = true
			for n := 1; n <= l.Limit; n++ {
				takes := v.Fleet.Latency(l.Variant, i.DeviceType(), n, 1)
				b := poolBatch{
					variant: l.Variant, size: n, takes: takes, seconds: takes.Seconds(),
					perQuery: takes.Seconds() / float64(n), accuracy: spec.Variants[l.Variant].Accuracy,
				}
				b.expLatency = math.Exp(float64(takes) / float64(s.meanWait))
				if takes <= s.slo {
					s.batches = append(s.batches, b)
				}
				if s.cheapest.size == 0 || b.perQuery < s.cheapest.perQuery {
					s.cheapest = b
				}
			}
		}
	}
	for _, i := range all {
		n := 0
		for k := range i.Variants() {
			l := i.Variant(k)
			if l.Usable() {
				n++
			}
		}
		s.uniform = s.uniform && n == len(seen)
	}
	full := slices.Clone(s.batches)
	s.batches = slices.DeleteFunc(s.batches, func(a poolBatch) bool {
		return s.uniform && slices.ContainsFunc(full, func(b poolBatch) bool {
			return a.size == b.size && b.takes <= a.takes && b.accuracy >= a.accuracy &&
				(b.takes < a.takes || b.accuracy > a.accuracy || b.variant < a.variant)
		})
	})
	slices.SortStableFunc(s.batches, func(a, b poolBatch) int { return int(a.takes - b.takes) })
	s.best, s.expGain = make([]float64, len(s.batches)+1), make([]float64, len(s.batches)+1)
}

// poolState is the state of the pool and the value functions for the present load.
type poolState struct {
	left      float64      // s of work left on busy instances, in all
	next      serving.Time // believed end of the next batch; Never without any
	low, high *plan.ValueFunction
	fraction  float64 // position of the load between low and high, in [0, 1]
	rate      float64 // queries/s
	workers   float64
	residual  float64 // s; as in plan.ValueFunction
	gain      float64
	late      float64 // loss of a query left behind that ends late
}

// observe lists the idle instances and adds up the work left on the others.
func (s *tidalStage) observe(v *route.View) poolState {
	t := poolState{next: serving.Never}
	left := time.Duration(0)
	s.idle = s.idle[:0]
	for _, i := range v.Instances() {
		if i.Running() == 0 && i.Queue().Len() == 0 {
			s.idle = append(s.idle, i)
			continue
		}
		for k := range i.Running() {
			if e := i.Batch(k).Expected; e > v.Now {
				left += e.Sub(v.Now)
				t.next = min(t.next, e)
			}
		}
	}
	t.left = left.Seconds()
	return t
}

// setLoad sets the value functions for a rate in queries/s. Fewer instances than planned count as a higher load.
func (t *poolState) setLoad(s *tidalStage, rate float64, workers int) {
	rates := s.values.ByRate
	scale := float64(s.values.Workers) / float64(workers)
	t.workers = float64(workers)
	t.rate = min(max(rate*scale, rates[0].Rate), rates[len(rates)-1].Rate) / scale
	t.low, t.high, t.fraction = s.values.Between(t.rate * scale)
	mix := func(a, b float64) float64 { return a + t.fraction*(b-a) }
	t.residual = mix(t.low.Residual.Seconds(), t.high.Residual.Seconds())
	t.gain, t.late = mix(t.low.Gain, t.high.Gain), mix(t.low.LatePenalty, t.high.LatePenalty)
	if rate*scale <= overload*rates[len(rates)-1].Rate {
		t.late *= lateFactor
	}
}

// position returns the pool's position with so many queries waiting that can be in time.
func (t *poolState) position(waiting int) float64 {
	return float64(waiting) + t.rate*(t.left/t.workers-t.residual)
}

func (t *poolState) value(x float64) float64 {
	low := t.low.At(x)
	if t.high == t.low {
		return low
	}
	return low + t.fraction*(t.high.At(x)-low)
}

// collect lists the queries that can be in time.
func (s *tidalStage) collect(v *route.View, plain bool) {
	s.waiting, s.ends, s.late = s.waiting[:0], s.ends[:0], 0
	q := v.Waiting()
	first := v.Now.Add(s.batches[0].takes) // earliest deadline that can be met
	ordered := v.Fleet.Uniform(q)
	for r := q.Tail(); r != fleet.Nil; r = v.Fleet.Previous(r) {
		t := v.Fleet.Task(r)
		if !plain && needsOwnBatch(t) {
			continue
		}
		if t.Deadline() < first {
			if ordered && plain {
				s.late = q.Len() - len(s.waiting)
				break
			}
			s.late++
			continue
		}
		s.waiting, s.ends = append(s.waiting, r), append(s.ends, t.Deadline())
		if ordered {
			continue
		}
		for at := len(s.ends) - 1; at > 0 && s.ends[at] > s.ends[at-1]; at-- {
			s.ends[at], s.ends[at-1] = s.ends[at-1], s.ends[at]
			s.waiting[at], s.waiting[at-1] = s.waiting[at-1], s.waiting[at]
		}
	}
}

func needsOwnBatch(t *fleet.Task) bool { return t.Constrained() || t.Items() != 1 }

// choose returns the best batch for an idle instance and the index of its oldest query; nil to let all wait, with the
// index -1 where the instance can run no batch in time.
func (s *tidalStage) choose(v *route.View, t *poolState, i *fleet.Instance) (*poolBatch, int) {
	n := len(s.waiting)
	if n == 0 {
		return nil, 0
	}
	perWorker := t.rate / t.workers
	x := t.position(n)
	now := t.value(x)
	price := max(t.value(x-1)-t.value(x+1), 0) / 2 * perWorker // accuracy per second of a worker
	// First the best gain of a query by how fast it has to go. From that follows the loss of each when left behind: the
	// expectation over its further wait.
	top, expGain := -t.late, 0.0
	s.best[0] = top
	for k := range s.batches {
		b := &s.batches[k]
		if x := b.accuracy - price*b.perQuery; x > top {
			expGain += (x - top) * b.expLatency
			top = x
		}
		s.best[k+1], s.expGain[k+1] = top, expGain
	}
	s.loss = append(s.loss[:0], 0)
	sum, k := 0.0, len(s.batches)
	for _, end := range s.ends {
		left := end.Sub(v.Now)
		for k > 0 && s.batches[k-1].takes > left {
			k--
		}
		sum += top - s.best[k] + s.expGain[k]*math.Exp(-float64(left)/float64(s.meanWait))
		s.loss = append(s.loss, sum)
	}
	var best *poolBatch
	most, last := math.Inf(-1), 0
	fits := n // queries that are in time with the present batch
	for k := range s.batches {
		b := &s.batches[k]
		for fits > 0 && s.ends[fits-1] < v.Now.Add(b.takes) {
			fits--
		}
		if fits < b.size {
			continue
		}
		if !s.uniform && !i.Serves(b.variant) {
			continue
		}
		worth := float64(b.size)*(b.accuracy-t.gain) + t.value(x-float64(b.size)+perWorker*b.seconds) - now +
			s.loss[fits] - s.loss[fits-b.size]
		if worth > most {
			best, most, last = b, worth, fits-1
		}
	}
	if best == nil {
		return nil, -1
	}
	if most > 0 {
		return best, last
	}
	// The rule is called again when the next batch ends, or a query arrives.
	if t.next != serving.Never && t.next.Add(best.takes) <= s.ends[last] &&
		t.next.Add(s.batches[0].takes) <= s.ends[n-1] {
		return nil, 0
	}
	return best, last
}

// serveLate serves queries that are already late, as many at once as costs least per query.
func (s *tidalStage) serveLate(v *route.View, t *poolState, i *fleet.Instance) {
	s.idle = slices.Delete(s.idle, 0, 1)
	v.Choose(i, s.cheapest.variant)
	if !i.Serves(s.cheapest.variant) {
		v.Choose(i, serving.None)
	}
	takes := s.cheapest.takes
	n := min(s.late, s.cheapest.size)
	s.late -= n
	t.left += takes.Seconds()
	t.next = min(t.next, v.Now.Add(takes))
	first := v.Now.Add(s.batches[0].takes)
	for r := v.Waiting().Head(); r != fleet.Nil && n > 0; {
		next := v.Fleet.Next(r)
		if t := v.Fleet.Task(r); t.Deadline() < first && !needsOwnBatch(t) && v.Fleet.CanServe(i, t) {
			v.Assign(r, i)
			n--
		}
		r = next
	}
}

// serveSingly gives queries without a batch, one each, to idle instances: those with requirements of their own or
// several items, and all while there are no values.
func (s *tidalStage) serveSingly(v *route.View) {
	all := s.values == nil || len(s.batches) == 0
	for r := v.Waiting().Head(); r != fleet.Nil && len(s.idle) > 0; {
		next := v.Fleet.Next(r)
		if t := v.Fleet.Task(r); all || needsOwnBatch(t) {
			for k, i := range s.idle {
				if v.Fleet.CanServe(i, t) {
					v.Choose(i, serving.None)
					v.Assign(r, i)
					s.idle = slices.Delete(s.idle, k, k+1)
					break
				}
			}
		}
		r = next
	}
}
