package route

import (
	"math"

	"github.com/sluice-serving/sluice/internal/algo/pq"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Weighted gives each instance its planned share of the stage's queries, deterministically: after n queries an instance
// of share w has received n*w, to within less than one. It is Tijdeman's solution of the chairman assignment problem
// (R. Tijdeman, "The chairman assignment problem", Discrete Mathematics 32, 1980). With k instances and d = 1/(2k-2),
// the n-th query goes to the instance with the earliest deadline among those with n*w - served >= d. Over a window that
// does not begin with the plan the deviation is below two. For three or more unequal shares no sequence brings it below
// one in general.
//
// Proteus §4 routes by the plan's y this way. The authors' release draws instances uniformly.
type Weighted struct{ byStage[weightedStage] }

type weightedStage struct {
	epoch    uint64
	built    bool
	n        int64 // queries assigned since the shares were set
	delta    float64
	share    []float64 // by index into the ready instances; adds up to 1
	received []int64
	// what an instance gets beside its share; negative after it got too much; its absolute value is at most one
	owed     []float64
	due      pq.Heap // eligible instances by deadline, a query number
	upcoming pq.Heap // other instances by the query number at which they become eligible
}

// NewWeighted returns the rule.
func NewWeighted() *Weighted { return &Weighted{} }

// Name implements Router.
func (*Weighted) Name() string { return "weighted" }

// Needs implements Router.
func (*Weighted) Needs() plan.Sections { return plan.Shares }

// Traits implements Router.
func (*Weighted) Traits() Traits { return Traits{} }

// Route implements Router. A query without requirements costs time logarithmic in the stage's instances.
func (o *Weighted) Route(v *View) {
	s := o.of(v.Stage)
	all := v.Instances()
	if !s.built || s.epoch != v.Fleet.Epoch() {
		s.build(all, v.Fleet.Epoch())
	}
	if len(all) == 0 {
		return
	}
	for r := v.Waiting().Head(); r != fleet.Nil; {
		next := v.Fleet.Next(r)
		t := v.Fleet.Task(r)
		if at := s.next(); at >= 0 && v.Fleet.CanServe(all[at], t) {
			s.serve(at)
			v.Assign(r, all[at])
		} else if at := s.nextAccepting(func(i int) bool { return v.Fleet.CanServe(all[i], t) }, len(all)); at >= 0 {
			s.serve(at)
			v.Assign(r, all[at])
		}
		r = next
	}
}

func (s *weightedStage) build(all []*fleet.Instance, epoch uint64) {
	s.epoch, s.built = epoch, true
	s.share, s.owed = s.share[:0], s.owed[:0]
	for _, i := range all {
		s.share, s.owed = append(s.share, i.Share()), append(s.owed, 0)
	}
	s.reset()
}

// reset normalises the shares and restarts all counts.
func (s *weightedStage) reset() {
	s.n = 0
	s.due.Reset()
	s.upcoming.Reset()
	s.received = s.received[:0]
	total, k := 0.0, 0
	for _, w := range s.share {
		total += w
		if w > 0 {
			k++
		}
	}
	s.delta = 0.5 // for one instance any value in [0, 1) will do
	if k > 1 {
		s.delta = 1 / float64(2*k-2)
	}
	for at := range s.share {
		s.received = append(s.received, 0)
		if total > 0 {
			s.share[at] /= total
		} else {
			s.share[at] = 1 / float64(len(s.share)) // a plan without shares: equal ones
		}
	}
	for at, w := range s.share {
		if w > 0 {
			s.upcoming.Set(at, s.eligible(at))
		}
	}
}

// eligible is the number of the first query at which instance at may be served again.
func (s *weightedStage) eligible(at int) int64 {
	return max(int64(math.Ceil((float64(s.received[at])-s.owed[at]+s.delta)/s.share[at]-1e-9)), s.n+1)
}

// deadline is the query number, in millionths, by which instance at must have been served.
func (s *weightedStage) deadline(at int) int64 {
	d := (float64(s.received[at]) - s.owed[at] + 1 - s.delta) / s.share[at] * 1e6
	if d > math.MaxInt64/2 {
		return math.MaxInt64 / 2
	}
	return int64(d)
}

// next returns the index of the instance for the next query; -1 without any.
func (s *weightedStage) next() int {
	for {
		at, n, ok := s.upcoming.Min()
		if !ok || n > s.n+1 {
			break
		}
		s.upcoming.Remove(at)
		s.due.Set(at, s.deadline(at))
	}
	if at, _, ok := s.due.Min(); ok {
		return at
	}
	if at, _, ok := s.upcoming.Min(); ok {
		return at // rounding left no instance eligible: take the next one
	}
	return -1
}

// nextAccepting returns the accepting instance, of the first n, with the earliest deadline; -1 without any. Instances
// without a share come last.
func (s *weightedStage) nextAccepting(accept func(int) bool, n int) int {
	best, soonest := -1, int64(math.MaxInt64)
	for at := range n {
		d := int64(math.MaxInt64 - 1) // without a share
		if s.share[at] > 0 {
			d = s.deadline(at)
		}
		if d < soonest && accept(at) {
			best, soonest = at, d
		}
	}
	return best
}

// serve records that instance at gets the next query.
func (s *weightedStage) serve(at int) {
	s.n++
	s.received[at]++
	if s.share[at] == 0 {
		return
	}
	s.due.Remove(at)
	s.upcoming.Set(at, s.eligible(at))
}
