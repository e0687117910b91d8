package route

import (
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Tidal keeps queries in a central queue and, for an instance with nothing to do, weighs all batches that could be made
// of what waits: their variant, their size and which queries, the oldest that would still be in time. It is ours. The
// batch is taken that brings most of
//
//	accuracy of its queries - what queries bring on average
//	+ value of the pool's position after - value of the position now
//	+ what its queries would lose by being left for the next opportunity
//
// where positions and values are the plan's (plan.ValueFunction), for the load of the last half second. The last term
// is what knows the slack of every query: one that is left behind has fewer variants to choose from, valued at the
// present price of a worker's time, which is by how much the position's value falls. So the fresh go to slow variants
// and the old to fast ones.
//
// When nothing is worth taking, the queries wait for others to share a batch with, if a batch is about to end before
// they lose by it. A query that cannot be in time any more is served when an instance has nothing better to do, or when
// there are more instances than needed. Priorities are not known to it: deadlines are what counts. A query that brings
// several inputs or has requirements of its own goes alone to an idle instance that can serve it.
type Tidal struct{ stages []tidalStage }

// NewTidal returns the rule.
func NewTidal() *Tidal { return &Tidal{} }

// Name implements Router.
func (*Tidal) Name() string { return "tidal" }

// Needs implements Router.
func (*Tidal) Needs() plan.Sections { return plan.Values }

// Traits implements Router.
func (*Tidal) Traits() Traits { return Traits{Chooses: true} }

// A query left behind is taken to wait longer for a time that is exponentially distributed, its mean this part of the
// objective, or with few workers half the objective over their number. The tail is what matters: queries that every
// batch skips because fresh ones do better would otherwise be thought of only when each of them needs a worker of its
// own.
const patience = 1. / 15

// dread is how much worse than in the plan's process a late query is for those that are left behind: there it is an
// average, here the end of a query that could still be saved. While the load is beyond what there are prices for, some
// query must be late, and that it is this one is no worse.
const dread = 10

// beyond is how far above the last price a load has to be seen to be taken for one that has none: rates counted over
// half a second are that uncertain.
const beyond = 1.05

// tidalStage is what can be known of a stage before anything waits, and room for what cannot.
type tidalStage struct {
	plan   *plan.Plan
	epoch  uint64
	built  bool
	prices *plan.ValueFunctions
	app    serving.AppID
	slo    time.Duration

	batches []poolBatch // that can be in time, ascending by latency
	clear   poolBatch   // takes least of a worker for each query, in time or not
	alike   bool        // every instance has all variants warm

	patience time.Duration
	// by number of batches that are fast enough: the most that one brings for a query, less its price
	best    []float64
	rising  []float64      // by the same number: what each adds to that, times how much sooner than at 0 it is lost
	waiting []fleet.Ref    // that can be in time, the latest deadline first
	ends    []serving.Time // their deadlines
	late    int            // queries that cannot
	loss    []float64      // by how many of the latest are taken: what they lose when left behind
	idle    []*fleet.Instance
}

// poolBatch is a batch of one size on one variant.
type poolBatch struct {
	variant  serving.VariantID
	size     int
	takes    time.Duration
	seconds  float64
	each     float64 // s for each query
	sooner   float64 // e to the latency in units of patience
	accuracy float64
}

// Route implements Router. It takes time in proportion to the stage's instances and the queries that wait.
func (o *Tidal) Route(v *View) {
	for len(o.stages) <= int(v.Stage) {
		o.stages = append(o.stages, tidalStage{})
	}
	s := &o.stages[v.Stage]
	if !s.built || s.epoch != v.Fleet.Epoch() || s.plan != v.Plan {
		s.build(v)
	}
	pool := s.look(v)
	if len(s.idle) == 0 {
		return
	}
	waiting := v.Waiting()
	plain := waiting.Plain() && waiting.Unit()
	if !plain || s.prices == nil || len(s.batches) == 0 {
		s.alone(v)
	}
	if s.prices == nil || len(s.batches) == 0 {
		return
	}
	s.collect(v, plain)
	pool.price(s, v.Monitor.Recent(v.Now, s.app), len(v.Instances()))
	for len(s.idle) > 0 {
		i := s.idle[0]
		if i.Active() < 0 {
			s.idle = slices.Delete(s.idle, 0, 1) // it runs only what is pinned to its variants
			continue
		}
		b, last := s.choose(v, &pool, i)
		if s.late > 0 && (b == nil || pool.position(len(s.waiting)) <= 0) {
			s.clearUp(v, &pool, i)
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

func (s *tidalStage) build(v *View) {
	spec := v.Fleet.Spec()
	*s = tidalStage{
		plan: v.Plan, epoch: v.Fleet.Epoch(), built: true, app: spec.Stages[v.Stage].App, batches: s.batches[:0],
		alike:   true,
		waiting: s.waiting, ends: s.ends, loss: s.loss, idle: s.idle,
	}
	s.slo = spec.Apps[s.app].SLO.Latency
	if v.Plan != nil {
		s.prices = v.Plan.ValuesOf(v.Stage)
	}
	all := v.Instances()
	s.patience = time.Duration(max(float64(s.slo)*patience, float64(s.slo)/2/float64(len(all))))
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
					each: takes.Seconds() / float64(n), accuracy: spec.Variants[l.Variant].Accuracy,
				}
				b.sooner = math.Exp(float64(takes) / float64(s.patience))
				if takes <= s.slo {
					s.batches = append(s.batches, b)
				}
				if s.clear.size == 0 || b.each < s.clear.each {
					s.clear = b
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
		s.alike = s.alike && n == len(seen)
	}
	full := slices.Clone(s.batches)
	s.batches = slices.DeleteFunc(s.batches, func(a poolBatch) bool {
		return s.alike && slices.ContainsFunc(full, func(b poolBatch) bool {
			return a.size == b.size && b.takes <= a.takes && b.accuracy >= a.accuracy &&
				(b.takes < a.takes || b.accuracy > a.accuracy || b.variant < a.variant)
		})
	})
	slices.SortStableFunc(s.batches, func(a, b poolBatch) int { return int(a.takes - b.takes) })
	s.best, s.rising = make([]float64, len(s.batches)+1), make([]float64, len(s.batches)+1)
}

// tide is the state of the pool, and the worth of such states at the present load.
type tide struct {
	left      float64      // s of work that busy instances have left, together
	next      serving.Time // when the next of them is due; Never if none is
	low, high *plan.ValueFunction
	part      float64 // how far the load is from low to high
	rate      float64 // queries/s
	workers   float64
	rest      float64 // s
	gain      float64
	late      float64 // what a query left behind loses when it ends up late
}

// look finds out which instances are idle and what the others have left.
func (s *tidalStage) look(v *View) tide {
	t := tide{next: serving.Never}
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

// price finds the worth of positions at a load. Fewer instances than planned for are like as many with a higher load.
func (t *tide) price(s *tidalStage, rate float64, workers int) {
	rates := s.prices.ByRate
	scale := float64(s.prices.Workers) / float64(workers)
	t.workers = float64(workers)
	t.rate = min(max(rate*scale, rates[0].Rate), rates[len(rates)-1].Rate) / scale
	t.low, t.high, t.part = s.prices.Between(t.rate * scale)
	mix := func(a, b float64) float64 { return a + t.part*(b-a) }
	t.rest = mix(t.low.Residual.Seconds(), t.high.Residual.Seconds())
	t.gain, t.late = mix(t.low.Gain, t.high.Gain), mix(t.low.LatePenalty, t.high.LatePenalty)
	if rate*scale <= beyond*rates[len(rates)-1].Rate {
		t.late *= dread
	}
}

// position is the pool's when so many queries wait that can be in time.
func (t *tide) position(waiting int) float64 {
	return float64(waiting) + t.rate*(t.left/t.workers-t.rest)
}

func (t *tide) value(x float64) float64 {
	low := t.low.At(x)
	if t.high == t.low {
		return low
	}
	return low + t.part*(t.high.At(x)-low)
}

// collect lists the queries that can be in time.
func (s *tidalStage) collect(v *View, plain bool) {
	s.waiting, s.ends, s.late = s.waiting[:0], s.ends[:0], 0
	q := v.Waiting()
	first := v.Now.Add(s.batches[0].takes) // the first deadline that can be kept
	ordered := v.Fleet.Uniform(q)
	for r := q.Tail(); r != fleet.Nil; r = v.Fleet.Previous(r) {
		t := v.Fleet.Task(r)
		if !plain && odd(t) {
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

func odd(t *fleet.Task) bool { return t.Special() || t.Items() != 1 }

// choose returns the best batch for an idle instance and the index of its oldest query, or nil to let all wait.
func (s *tidalStage) choose(v *View, t *tide, i *fleet.Instance) (*poolBatch, int) {
	n := len(s.waiting)
	if n == 0 {
		return nil, 0
	}
	perWorker := t.rate / t.workers
	x := t.position(n)
	now := t.value(x)
	price := max(t.value(x-1)-t.value(x+1), 0) / 2 * perWorker // accuracy for a second of a worker
	// What a query brings at best, by how fast it has to go, and from that what each loses when left behind: the
	// expectation over how much longer it waits, step by step of what it brings.
	top, rising := -t.late, 0.0
	s.best[0] = top
	for k := range s.batches {
		b := &s.batches[k]
		if x := b.accuracy - price*b.each; x > top {
			rising += (x - top) * b.sooner
			top = x
		}
		s.best[k+1], s.rising[k+1] = top, rising
	}
	s.loss = append(s.loss[:0], 0)
	sum, k := 0.0, len(s.batches)
	for _, end := range s.ends {
		left := end.Sub(v.Now)
		for k > 0 && s.batches[k-1].takes > left {
			k--
		}
		sum += top - s.best[k] + s.rising[k]*math.Exp(-float64(left)/float64(s.patience))
		s.loss = append(s.loss, sum)
	}
	var best *poolBatch
	most, last := math.Inf(-1), 0
	fits := n // queries that the batch at hand leaves in time
	for k := range s.batches {
		b := &s.batches[k]
		for fits > 0 && s.ends[fits-1] < v.Now.Add(b.takes) {
			fits--
		}
		if fits < b.size {
			continue
		}
		if !s.alike && !i.Serves(b.variant) {
			continue
		}
		worth := float64(b.size)*(b.accuracy-t.gain) + t.value(x-float64(b.size)+perWorker*b.seconds) - now +
			s.loss[fits] - s.loss[fits-b.size]
		if worth > most {
			best, most, last = b, worth, fits-1
		}
	}
	if best == nil || most > 0 {
		return best, last
	}
	// Nobody will ask again before the next batch ends, unless queries arrive.
	if t.next != serving.Never && t.next.Add(best.takes) <= s.ends[last] &&
		t.next.Add(s.batches[0].takes) <= s.ends[n-1] {
		return nil, 0
	}
	return best, last
}

// clearUp serves queries that are late already, as many at once as costs least.
func (s *tidalStage) clearUp(v *View, t *tide, i *fleet.Instance) {
	s.idle = slices.Delete(s.idle, 0, 1)
	v.Choose(i, s.clear.variant)
	if !i.Serves(s.clear.variant) {
		v.Choose(i, serving.None)
	}
	takes := s.clear.takes
	n := min(s.late, s.clear.size)
	s.late -= n
	t.left += takes.Seconds()
	t.next = min(t.next, v.Now.Add(takes))
	first := v.Now.Add(s.batches[0].takes)
	for r := v.Waiting().Head(); r != fleet.Nil && n > 0; {
		next := v.Fleet.Next(r)
		if t := v.Fleet.Task(r); t.Deadline() < first && !odd(t) && v.Fleet.CanServe(i, t) {
			v.Assign(r, i)
			n--
		}
		r = next
	}
}

// alone gives queries that no batch can be made of, one each, to idle instances: those with requirements of their own,
// and all while there are no prices.
func (s *tidalStage) alone(v *View) {
	all := s.prices == nil || len(s.batches) == 0
	for r := v.Waiting().Head(); r != fleet.Nil && len(s.idle) > 0; {
		next := v.Fleet.Next(r)
		if t := v.Fleet.Task(r); all || odd(t) {
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
