package route

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Bands keeps the rate of every instance between what it needs for its batches to fill and what it can carry (INFless §3.2).
// With R queries/s for a stage whose instances are bounded by Low and Up, and Rmin and Rmax the sums of the bounds:
//
//   - R >= Rmax: each instance its Up; what is beyond waits centrally until something is free or more instances come.
//   - in the band: instance i gets Up - (Rmax-R)/(Rmax-Rmin) (Up-Low).
//   - below it (R < alpha Rmin + (1-alpha) Rmax): the paper leaves this to the scaler, which gives instances up. Until it has,
//     as few instances as carry the rate get the rates above, the largest first, each only if the rest of the rate can fill
//     its batches; the others get nothing.
//
// Queries follow these rates one by one and deterministically, as in Weighted but with shares that change: each instance is
// credited its share of every query and charged for those it gets, and of the instances whose credit has come to what Tijdeman's
// rule asks for, the one goes first that would be too late soonest. R is the rate of the last second.
//
// An instance whose next batch is full and has not started gets nothing (Figure 6a): the query goes to another, one without a
// rate as well, or waits centrally.
type Bands struct{ stages []bandedStage }

type bandedStage struct {
	epoch uint64
	built bool
	rate  float64 // R
	parts []part  // by index into the ready instances
	order []int32 // of parts, the largest Up first
	delta float64
}

// part is an instance's part of a stage's queries.
type part struct {
	low, up float64
	share   float64
	credit  float64
	chosen  bool
}

const (
	bandAlpha  = 0.8
	bandWindow = time.Second
	// mostCredit bounds what an instance is owed, or owes, after others had to take its queries, in queries.
	mostCredit = 1.0
)

// NewBands returns the rule.
func NewBands() *Bands { return &Bands{} }

// Name implements Router.
func (*Bands) Name() string { return "bands" }

// Needs implements Router.
func (*Bands) Needs() plan.Sections { return plan.Bands }

// Route implements Router: linear in the stage's instances for each query.
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
	rate := v.Monitor.Rate(v.Now, v.Fleet.Spec.Stages[v.Stage].App, bandWindow)
	if !s.built || s.epoch != v.Fleet.Epoch {
		s.build(all, v.Fleet.Epoch)
		s.divide(rate)
	} else if rate != s.rate {
		s.divide(rate)
	}
	for r := v.Waiting().Head(); r != fleet.Nil; {
		next := v.Fleet.Next(r)
		t := v.Fleet.Task(r)
		if at := s.next(v, all, t); at >= 0 {
			s.serve(at)
			v.Assign(r, all[at])
		} else if !t.Special && t.Items == 1 {
			return // there is room for nothing
		}
		r = next
	}
}

// build takes over the instances that are ready now, without debts.
func (s *bandedStage) build(all []*fleet.Instance, epoch uint64) {
	s.epoch, s.built = epoch, true
	s.parts, s.order = s.parts[:0], s.order[:0]
	for at, i := range all {
		s.parts = append(s.parts, part{low: i.Low, up: i.Up})
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
	total, k := 0.0, 0
	for n := range s.parts {
		p := &s.parts[n]
		p.share = 0
		if p.chosen {
			p.share = (p.up - down*(p.up-p.low)) * scale
		}
		total += p.share
	}
	for n := range s.parts {
		p := &s.parts[n]
		if total > 0 {
			p.share /= total
		} else {
			p.share = 1 / float64(len(s.parts)) // no bounds were planned
		}
		if p.share > 0 {
			k++
		}
	}
	s.delta = 0.5
	if k > 1 {
		s.delta = 1 / float64(2*k-2)
	}
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

// next returns the instance for a query, or -1 when it has to wait.
func (s *bandedStage) next(v *View, all []*fleet.Instance, t *fleet.Task) int {
	best, soonest, owed, early := -1, math.Inf(1), false, math.Inf(1)
	for at := range s.parts {
		p := &s.parts[at]
		if !takes(v, all[at], t) {
			continue
		}
		credit := p.credit + p.share
		due := math.MaxFloat64 // without a share: only when nothing else will do
		if p.share > 0 {
			due = (1 - s.delta - p.credit) / p.share
		}
		switch eligible := p.share > 0 && credit >= s.delta-1e-9; {
		case eligible && (!owed || due < soonest):
			best, soonest, owed = at, due, true
		case !eligible && !owed:
			// Nobody is owed a query that could take it: the one that will be first.
			wait := due
			if p.share > 0 {
				wait = (s.delta - credit) / p.share
			}
			if best < 0 || wait < early {
				best, early = at, wait
			}
		}
	}
	return best
}

// takes tells whether an instance may be given a query: its next batch has room.
func takes(v *View, i *fleet.Instance, t *fleet.Task) bool {
	if !v.Fleet.CanServe(i, t) {
		return false
	}
	items := i.Queue.Items()
	return items == 0 || items+int(t.Items) <= i.Limit()
}

// serve credits every instance its share of a query and charges the one that gets it.
func (s *bandedStage) serve(to int) {
	for at := range s.parts {
		p := &s.parts[at]
		p.credit += p.share
		if at == to {
			p.credit--
		}
		p.credit = min(max(p.credit, -mostCredit), mostCredit)
	}
}
