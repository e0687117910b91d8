package scrooge

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// solution is the allocation of a pipeline.
type solution struct {
	problem *Problem
	*Allocation
	modes [][]Mode // by module: those that may be used, in the problem or left out of it
}

// candidate is one way to serve all pipelines: their allocations, and the machines that their uses are packed on.
type candidate struct {
	request   *request
	solutions []*solution // by pipeline
	packing   packing
	cost      float64 // of what is rented, in $/h
	used      float64 // of what is used of it, in $/h
}

// candidateSearch looks for the candidate that rents least.
//
// Allocation counts machines by the part that is used, but whole machines are paid. The cheapest allocation may use a
// little of many types where a more expensive one fills a few machines of one type. So the search also makes
// allocations without one or more of the types that were used, packs each, and takes the one that rents least. The
// paper tries the cheapest allocation only; it allocates again without a type when that cannot be rented.
type candidateSearch struct {
	*request
	solved map[string]*solution
}

// maxCandidates is how many candidates are tried.
const maxCandidates = 12

// best returns the candidate that rents least for a part of the demand or, if none fits the workers, the one that would
// rent least.
func (s *candidateSearch) best(ctx context.Context, part float64) (*candidate, error) {
	var best *candidate
	seen := make(map[string]bool)
	waiting := [][]bool{make([]bool, len(s.spec.DeviceTypes))} // by candidate to try: the types to leave out
	for n := 0; len(waiting) > 0 && n < maxCandidates; n++ {
		without := waiting[0]
		waiting = waiting[1:]
		c, err := s.try(ctx, part, without)
		if err != nil {
			return nil, err
		}
		if best == nil || c.better(best) {
			best = c
		}
		if s.o.AsWritten && c.fits() {
			break
		}
		for _, d := range c.leaveOut() {
			if s.o.AsWritten && c.short()[d] == 0 {
				continue
			}
			next := slices.Clone(without)
			next[d] = true
			if k := key(next); !seen[k] {
				seen[k] = true
				waiting = append(waiting, next)
			}
		}
	}
	return best, nil
}

func key(without []bool) string {
	out := make([]byte, len(without))
	for d, x := range without {
		if x {
			out[d] = 1
		}
	}
	return string(out)
}

// try makes a candidate without some types. A module that runs on nothing else keeps them.
func (s *candidateSearch) try(ctx context.Context, part float64, without []bool) (*candidate, error) {
	c := &candidate{request: s.request}
	for g := range s.pipelines {
		x, err := s.allocate(ctx, g, part, without)
		if err != nil {
			return nil, err
		}
		c.solutions = append(c.solutions, x)
		c.used += x.Cost
	}
	c.pack()
	return c, nil
}

// allocate returns the allocation of a pipeline, a new one when there is none yet.
func (s *candidateSearch) allocate(ctx context.Context, g int, part float64, without []bool) (*solution, error) {
	name := name(g, part, without)
	if known := s.solved[name]; known != nil {
		return known, nil
	}
	x := &s.pipelines[g]
	p, modes := &Problem{SLO: x.budget, Prices: s.prices}, make([][]Mode, len(x.stages))
	for i := range x.stages {
		st := &x.stages[i]
		m := Module{Rate: st.rate * part, Next: st.next, Modes: st.modes}
		if kept := slices.DeleteFunc(slices.Clone(st.modes), func(m Mode) bool {
			return without[m.Type]
		}); len(kept) > 0 {
			m.Modes = kept
		}
		p.Modules = append(p.Modules, m)
		modes[i] = st.modes
	}
	made, err := s.method()(ctx, p)
	if err != nil && ctx.Err() == nil {
		if more := addSingleBatches(p); more != nil {
			for i := range modes {
				modes[i] = slices.Concat(modes[i], more[i])
			}
			made, err = s.method()(ctx, p)
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil && slices.Contains(without, true) {
		return s.allocate(ctx, g, part, make([]bool, len(without)))
	}
	if err != nil {
		return nil, s.unservable(x, err)
	}
	out := &solution{p, made, modes}
	s.solved[name] = out
	return out, nil
}

// bound returns a proven lower bound, in $/h, on the use of any plan for a part of the demand; NaN where there is none.
// best must have been called for the part.
func (s *candidateSearch) bound(part float64) (out float64) {
	for g := range s.pipelines {
		x := s.solved[name(g, part, make([]bool, len(s.spec.DeviceTypes)))]
		if !x.Proven {
			return math.NaN()
		}
		out += x.Bound
	}
	return out
}

func name(g int, part float64, without []bool) string {
	return fmt.Sprintf("%d %v %s", g, part, key(without))
}

// addSingleBatches adds batches of one to the modules of a problem that have none, and returns them by module, nil when
// there are none. At low rates the smallest measured batch may not fill within the objective. A batch of one takes no
// longer than that one.
func addSingleBatches(p *Problem) (added [][]Mode) {
	for i := range p.Modules {
		m := &p.Modules[i]
		least := math.MaxInt
		for k := range m.Modes {
			least = min(least, m.Modes[k].Batch)
		}
		if least == 1 {
			continue
		}
		var more []Mode
		for _, x := range m.Modes {
			if x.Batch == least {
				x.Batch = 1
				more = append(more, x)
			}
		}
		if more != nil && added == nil {
			added = make([][]Mode, len(p.Modules))
		}
		if more != nil {
			added[i] = more
			m.Modes = slices.Concat(m.Modes, more)
		}
	}
	return added
}

// method returns the function that makes allocations.
func (s *candidateSearch) method() Method {
	if s.o.Method != nil {
		return s.o.Method
	}
	return func(_ context.Context, p *Problem) (*Allocation, error) { return Exact(p) }
}

// better orders candidates: those that fit first, then by what is rented, by the instances that go on, and by what is
// used.
func (c *candidate) better(o *candidate) bool {
	if c.fits() != o.fits() {
		return c.fits()
	}
	if !near(c.cost, o.cost) {
		return c.cost < o.cost
	}
	if a, b := c.continuing(), o.continuing(); a != b {
		return a > b
	}
	return c.used < o.used && !near(c.used, o.used)
}

// leaveOut lists the types to leave out in the next candidates: those of which there are too few first, then those that
// are used least.
func (c *candidate) leaveOut() (out []serving.DeviceTypeID) {
	use := make([]float64, len(c.request.prices))
	for d, n := range c.packing.used {
		use[d] = float64(n) * c.request.prices[d]
	}
	short := c.short()
	for d := range use {
		if use[d] > 0 {
			out = append(out, serving.DeviceTypeID(d))
		}
	}
	slices.SortStableFunc(out, func(a, b serving.DeviceTypeID) int {
		return cmp.Or(cmp.Compare(min(short[b], 1), min(short[a], 1)), cmp.Compare(use[a], use[b]))
	})
	return out
}
