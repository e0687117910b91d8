package diagnosis

import (
	"cmp"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// Change is what a remedy changes of a request. The zero value changes nothing.
type Change struct {
	Spec   *serving.Spec // nil for the request's
	Rates  []float64     // by AppID, queries/s; nil for the request's
	Add    []int         // machines beyond those that can be used, by DeviceTypeID; nil for none
	Budget float64       // $/h; 0 for the planner's own
}

// Search looks for remedies of a request.
type Search struct {
	Request plan.Request
	// Enough tells whether a planner carries a changed request. Possible, if not nil, tells the same of a relaxation,
	// which takes less time: what is not possible is not enough.
	Possible, Enough func(x *Change) bool
	Out              Diagnosis
}

// Run completes a diagnosis of which it is known how much is carried: by the steps, where that is not all. It ends with
// the error that failed returns after a step.
func (s *Search) Run(failed func() error, steps ...func()) (*Diagnosis, error) {
	if s.Out.Carried {
		s.Out.Multiple = max(s.Out.Multiple, 1)
		s.Out.Bound = max(s.Out.Bound, s.Out.Multiple)
		steps = nil
	}
	for _, step := range steps {
		if step(); failed() != nil {
			break
		}
	}
	if err := failed(); err != nil {
		return nil, err
	}
	return &s.Out, nil
}

// Found notes a remedy.
func (s *Search) Found(m Remedy) { s.Out.Remedies = append(s.Out.Remedies, m) }

// Altered returns a change of the apps. do gets a copy of them.
func (s *Search) Altered(do func(apps []serving.App)) *Change {
	spec := *s.Request.Spec
	spec.Apps = slices.Clone(spec.Apps)
	do(spec.Apps)
	return &Change{Spec: &spec}
}

// MinRelief is the least relative increase of the multiple without a stage, or a limit, that keeps more from being
// carried.
const MinRelief = 0.005

// FindBottlenecks notes the stages without which more than a multiple could be carried, or else those that nothing
// serves. without is the multiple that could be carried if some stages needed nothing.
func (s *Search) FindBottlenecks(all float64, without func(stages []serving.StageID) float64) {
	if len(s.Out.Unserved) > 0 {
		var stages []serving.StageID
		for _, u := range s.Out.Unserved {
			stages = append(stages, u.Stage)
		}
		rest := without(stages)
		for _, u := range s.Out.Unserved {
			s.Out.Bottlenecks = append(s.Out.Bottlenecks, Bottleneck{App: u.App, Stage: u.Stage, Without: rest})
		}
		return
	}
	for k := range s.Request.Spec.Stages {
		id := serving.StageID(k)
		if rest := without([]serving.StageID{id}); rest > all*(1+MinRelief) {
			s.Out.Bottlenecks = append(s.Out.Bottlenecks, Bottleneck{s.Request.Spec.Stages[k].App, id, rest})
		}
	}
	slices.SortStableFunc(s.Out.Bottlenecks, func(a, b Bottleneck) int { return cmp.Compare(b.Without, a.Without) })
}

// Narrow lists the apps of the bottlenecks, the worst first; all apps where none is narrower than the others.
func (s *Search) Narrow() (out []serving.AppID) {
	for _, b := range s.Out.Bottlenecks {
		if !slices.Contains(out, b.App) {
			out = append(out, b.App)
		}
	}
	for a := range s.Request.Spec.Apps {
		if len(s.Out.Bottlenecks) == 0 && !s.Request.Spec.Apps[a].Closed {
			out = append(out, serving.AppID(a))
		}
	}
	return out
}

// eachOrAll tries to mend one of some things after the other, at most so many of them; if none alone helps, all.
func eachOrAll[T any](list []T, most int, try func(of []T) bool) {
	alone := false
	for _, x := range list[:min(len(list), most)] {
		alone = try([]T{x}) || alone
	}
	if !alone && len(list) > 1 {
		try(list)
	}
}

// Tolerance is the relative precision of searched factors.
const Tolerance = 0.01

// Smallest returns about the smallest factor from 1 to most with which a change is enough. If relaxed, it looks first
// for the smallest with which it is possible.
func (s *Search) Smallest(most float64, relaxed bool, with func(factor float64) *Change) (float64, bool) {
	low := 1.0
	search := func(step float64, ok func(x *Change) bool) (float64, bool) {
		high := low * step
		for ; !ok(with(high)); step *= step {
			if low = high; high >= most {
				return 0, false
			}
			high = min(high*step, most)
		}
		for high/low > 1+Tolerance {
			if middle := math.Sqrt(low * high); ok(with(middle)) {
				high = middle
			} else {
				low = middle
			}
		}
		return high, true
	}
	if !relaxed || s.Possible == nil {
		return search(2, s.Enough)
	}
	first, ok := search(2, s.Possible)
	if !ok || s.Enough(with(first)) {
		return first, ok
	}
	low = first
	return search(1+2*Tolerance, s.Enough)
}
