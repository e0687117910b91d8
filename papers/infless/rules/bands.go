package rules

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/turns"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Bands keeps the rate of every instance between the rate with which its batches fill and the rate that it can carry
// (INFless §3.2). A stage has R queries/s. Its instances have bounds Low and Up, whose sums are Rmin and Rmax.
//
//   - R >= Rmax: each instance gets its Up. The excess waits centrally until something is free or more instances
//     come.
//   - In the band: instance i gets Up - (Rmax-R)/(Rmax-Rmin) (Up-Low).
//   - Below it (R < alpha Rmin + (1-alpha) Rmax, as §3.2 prints it; RateBands and the planner use the edge of Eq. 7):
//     the paper leaves this to the scaler, which stops instances. Until then, the fewest instances that carry the rate
//     get the rates above, the largest first, each only if the remaining rate fills its batches. The others get
//     nothing.
//
// Queries follow these rates one by one and deterministically, as in route.Weighted. R is the rate of the last second.
// When it changes, every instance keeps what it is owed or has received too much, up to one query.
//
// An instance whose next batch is full and has not started gets nothing (Figure 6a). Nor does one on which the query is
// believed to end too late behind the running batch. The query then goes to another instance, even one without a rate,
// or waits centrally. The latter is ours: a batch of one may take all of the objective, and then no query may wait
// behind another.
type Bands struct{ route.ByStage[bandStage] }

type bandStage struct {
	turns.Turns // of the ready instances, by index
	epoch       uint64
	built       bool
	rate        float64        // R, queries/s
	bands       []instanceBand // by index into the ready instances
	order       []int32        // of parts, the largest Up first
}

// instanceBand are the bounds of an instance's rate, in queries/s.
type instanceBand struct {
	low, up float64
	chosen  bool // gets queries
}

const (
	bandAlpha  = 0.8
	bandWindow = time.Second
)

// NewBands returns the rule.
func NewBands() *Bands { return &Bands{} }

// Name implements route.Router.
func (*Bands) Name() string { return "bands" }

// Needs implements route.Router.
func (*Bands) Needs() plan.Sections { return plan.Bands }

// Traits implements route.Router.
func (*Bands) Traits() route.Traits { return route.Traits{} }

// Route implements route.Router. A query costs time logarithmic in the stage's instances, or linear where some of them
// are full, and ten times a second.
func (o *Bands) Route(v *route.View) {
	s := o.Of(v.Stage)
	all := v.Instances()
	if len(all) == 0 {
		s.built = false
		return
	}
	rate := v.Monitor.Rate(v.Now, v.Fleet.Spec().Stages[v.Stage].App, bandWindow)
	if !s.built || s.epoch != v.Fleet.Epoch() {
		s.build(all, v.Fleet.Epoch())
		s.setRates(rate)
	} else if rate != s.rate {
		s.setRates(rate)
	}
	for r := v.Waiting().Head(); r != fleet.Nil; {
		next := v.Fleet.Next(r)
		t := v.Fleet.Task(r)
		at := s.Next()
		if at < 0 || !mayTake(v, all[at], t) {
			at = s.NextOf(func(k int) bool { return mayTake(v, all[k], t) })
		}
		if at >= 0 {
			s.Take(at)
			v.Assign(r, all[at])
		} else if !t.Constrained() && t.Items() == 1 {
			return // no instance has room
		}
		r = next
	}
}

// build takes over the instances that are ready now. Nothing is owed to them.
func (s *bandStage) build(all []*fleet.Instance, epoch uint64) {
	s.epoch, s.built = epoch, true
	s.Begin(len(all), func(at int) float64 { return all[at].Share() })
	s.bands, s.order = s.bands[:0], s.order[:0]
	for at, i := range all {
		low, up := i.Band()
		s.bands = append(s.bands, instanceBand{low: low, up: up})
		s.order = append(s.order, int32(at))
	}
	slices.SortStableFunc(s.order, func(a, b int32) int { return cmp.Compare(s.bands[b].up, s.bands[a].up) })
}

// setRates gives each instance its part of rate, in queries/s.
func (s *bandStage) setRates(rate float64) {
	s.rate = rate
	low, up := 0.0, 0.0
	for k := range s.bands {
		p := &s.bands[k]
		p.chosen = true
		low, up = low+p.low, up+p.up
	}
	if rate < bandAlpha*low+(1-bandAlpha)*up {
		low, up = s.chooseInstances(rate)
	}
	// down is how far rates move from Up to Low, in [0, 1]. scale reduces them further when even the sum of Low is too
	// much.
	down, scale := 0.0, 1.0
	switch {
	case rate >= up:
	case rate >= low && up > low:
		down = (up - rate) / (up - low)
	case low > 0:
		down, scale = 1, max(rate, math.SmallestNonzeroFloat64)/low
	}
	for n := range s.bands {
		p := &s.bands[n]
		s.Owed[n] = min(max(s.Owed[n]+s.Share[n]*float64(s.N)-float64(s.Received[n]), -1), 1)
		s.Share[n] = 0
		if p.chosen {
			s.Share[n] = (p.up - down*(p.up-p.low)) * scale
		}
	}
	s.Reset()
}

// chooseInstances marks the instances that carry a rate below the band. It returns the sums of their bounds.
func (s *bandStage) chooseInstances(rate float64) (low, up float64) {
	for k := range s.bands {
		s.bands[k].chosen = false
	}
	for _, at := range s.order {
		if p := &s.bands[at]; up < rate && p.low <= rate-low && p.up > 0 {
			p.chosen = true
			low, up = low+p.low, up+p.up
		}
	}
	// The remaining rate fills the batches of no other instance: take the one with the least Low.
	for up < rate || up == 0 {
		least := -1
		for k := range s.bands {
			if p := &s.bands[k]; !p.chosen && p.up > 0 && (least < 0 || p.low < s.bands[least].low) {
				least = k
			}
		}
		if least < 0 {
			break
		}
		p := &s.bands[least]
		p.chosen = true
		low, up = low+p.low, up+p.up
	}
	return low, up
}

// mayTake reports whether an instance may be given a query. Its next batch must have room. A query that waits for the
// running batch must be believed to end in time, unless its app serves late queries or it has waited for a cold start.
func mayTake(v *route.View, i *fleet.Instance, t *fleet.Task) bool {
	if !v.Fleet.CanServe(i, t) {
		return false
	}
	items := i.Queue().Items()
	if items > 0 && items+t.Items() > i.Limit() {
		return false
	}
	late := v.Fleet.Spec().Apps[v.Fleet.Spec().Stages[t.Stage()].App].Late
	return i.FreeSlots() > 0 || late == serving.ServeLate || t.ColdUntil() > 0 ||
		v.Now.Add(v.Fleet.Backlog(i, v.Now, t.Items())) <= t.Deadline()
}
