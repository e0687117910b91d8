package route

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Bands keeps the rate of every instance between what it needs for its batches to fill and what it can carry (INFless
// §3.2). With R queries/s for a stage whose instances are bounded by Low and Up, and Rmin and Rmax the sums of the
// bounds:
//
//   - R >= Rmax: each instance its Up; what is beyond waits centrally until something is free or more instances come.
//   - in the band: instance i gets Up - (Rmax-R)/(Rmax-Rmin) (Up-Low).
//   - below it (R < alpha Rmin + (1-alpha) Rmax): the paper leaves this to the scaler, which gives instances up. Until
//     it has, as few instances as carry the rate get the rates above, the largest first, each only if the rest of the
//     rate can fill its batches; the others get nothing.
//
// Queries follow these rates one by one and deterministically, as in Weighted; when R, the rate of the last second, has
// changed, every instance begins with what it is owed or has had too much by then, up to one query.
//
// An instance whose next batch is full and has not started gets nothing (Figure 6a), and none of which it is believed
// that the batch after the one that runs ends too late: the query goes to another, one without a rate as well, or waits
// centrally. The paper has no word on the latter. A batch of one may take all of the objective, and then none may wait
// behind another.
type Bands struct{ stages []bandedStage }

type bandedStage struct {
	weightedStage
	rate  float64 // R
	parts []part  // by index into the ready instances
	order []int32 // of parts, the largest Up first
}

// part is what an instance may have of a stage's queries.
type part struct {
	low, up float64
	chosen  bool
}

const (
	bandAlpha  = 0.8
	bandWindow = time.Second
)

// NewBands returns the rule.
func NewBands() *Bands { return &Bands{} }

// Name implements Router.
func (*Bands) Name() string { return "bands" }

// Needs implements Router.
func (*Bands) Needs() plan.Sections { return plan.Bands }

// Traits implements Router.
func (*Bands) Traits() Traits { return Traits{} }

// Route implements Router: logarithmic in the stage's instances for a query, linear while some of them are full, and
// ten times a second.
func (o *Bands) Route(v *View) {
	for len(o.stages) <= int(v.Stage) {
		o.stages = append(o.stages, bandedStage{})
	}
	s := &o.stages[v.Stage]
	all := v.Instances()
	if len(all) == 0 {
		s.built = false
		return
	}
	rate := v.Monitor.Rate(v.Now, v.Fleet.Spec().Stages[v.Stage].App, bandWindow)
	if !s.built || s.epoch != v.Fleet.Epoch() {
		s.build(all, v.Fleet.Epoch())
		s.divide(rate)
	} else if rate != s.rate {
		s.divide(rate)
	}
	for r := v.Waiting().Head(); r != fleet.Nil; {
		next := v.Fleet.Next(r)
		t := v.Fleet.Task(r)
		at := s.next()
		if at < 0 || !takes(v, all[at], t) {
			at = s.nextThat(func(k int) bool { return takes(v, all[k], t) }, len(all))
		}
		if at >= 0 {
			s.serve(at)
			v.Assign(r, all[at])
		} else if !t.Special() && t.Items() == 1 {
			return // there is room for nothing
		}
		r = next
	}
}

// build takes over the instances that are ready now, without debts.
func (s *bandedStage) build(all []*fleet.Instance, epoch uint64) {
	s.weightedStage.build(all, epoch)
	s.parts, s.order = s.parts[:0], s.order[:0]
	for at, i := range all {
		low, up := i.Band()
		s.parts = append(s.parts, part{low: low, up: up})
		s.order = append(s.order, int32(at))
	}
	slices.SortStableFunc(s.order, func(a, b int32) int { return cmp.Compare(s.parts[b].up, s.parts[a].up) })
}

// divide shares a rate out.
func (s *bandedStage) divide(rate float64) {
	s.rate = rate
	low, up := 0.0, 0.0
	for k := range s.parts {
		p := &s.parts[k]
		p.chosen = true
		low, up = low+p.low, up+p.up
	}
	if rate < bandAlpha*low+(1-bandAlpha)*up {
		low, up = s.choose(rate)
	}
	// down is the part of the way from Up to Low, less where even all of it is too much.
	down, scale := 0.0, 1.0
	switch {
	case rate >= up:
	case rate >= low && up > low:
		down = (up - rate) / (up - low)
	case low > 0:
		down, scale = 1, max(rate, math.SmallestNonzeroFloat64)/low
	}
	for n := range s.parts {
		p := &s.parts[n]
		s.owed[n] = min(max(s.owed[n]+s.share[n]*float64(s.n)-float64(s.given[n]), -1), 1)
		s.share[n] = 0
		if p.chosen {
			s.share[n] = (p.up - down*(p.up-p.low)) * scale
		}
	}
	s.begin()
}

// choose marks the instances that carry a rate below the band and returns the sums of their bounds.
func (s *bandedStage) choose(rate float64) (low, up float64) {
	for k := range s.parts {
		s.parts[k].chosen = false
	}
	for _, at := range s.order {
		if p := &s.parts[at]; up < rate && p.low <= rate-low && p.up > 0 {
			p.chosen = true
			low, up = low+p.low, up+p.up
		}
	}
	// Too little is left for any other to fill its batches: the one that needs least of them.
	for up < rate || up == 0 {
		least := -1
		for k := range s.parts {
			if p := &s.parts[k]; !p.chosen && p.up > 0 && (least < 0 || p.low < s.parts[least].low) {
				least = k
			}
		}
		if least < 0 {
			break
		}
		p := &s.parts[least]
		p.chosen = true
		low, up = low+p.low, up+p.up
	}
	return low, up
}

// takes tells whether an instance may be given a query: its next batch has room and, where it has to wait for the one
// that runs, is believed to end in time, unless late ones are served all the same, as those are that have waited for a
// start.
func takes(v *View, i *fleet.Instance, t *fleet.Task) bool {
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
