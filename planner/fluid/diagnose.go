package fluid

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// Diagnose says what a fleet can carry of the demand in r, and what would mend it when that is not all. Machines take
// turns, graphs share their objective as in a plan, and rented machines count up to DeviceType.MaxMachines and the
// planner's budget. A demand that is carried while an app misses its target is asked for at its targets: what the
// answer says of carrying then includes them.
//
// Every mend is enough by the program with whole machines and with what memory holds; nothing is simulated. Mends are
// searched to one per cent, assuming that more never carries less. Numbers of machines are the smallest that the
// program finds; Proven says that memory asks for no more. Diagnose fails when ctx ends or no worker is up.
func Diagnose(ctx context.Context, p *Planner, r plan.Request) (*capacity.Diagnosis, error) {
	down, _ := capacity.Unusable(r.Spec, r.Snapshot)
	d := &diagnoser{ctx: ctx, p: p, r: r, untargeted: true, out: &capacity.Diagnosis{Headroom: 1}}
	any := false
	for _, workers := range capacity.UsableWorkers(r.Spec, down) {
		d.listed = append(d.listed, len(workers))
		any = any || len(workers) > 0
	}
	if !any {
		return nil, capacity.Unserved(p.Profile, r.Spec, capacity.Asked{Fraction: 1}, nil, nil)
	}
	d.r.Spec = withEveryType(r.Spec)
	if d.out.Carried = d.enough(&change{}); d.out.Carried {
		d.untargeted = false
		d.out.Carried = d.enough(&change{})
	}
	if d.multiples(); d.out.Carried {
		d.out.Multiple = max(d.out.Multiple, 1)
		d.out.Bound = max(d.out.Bound, d.out.Multiple)
		return d.out, ctx.Err()
	}
	m := d.problem(&change{})
	d.findUnserved(m)
	d.findBottlenecks(m)
	d.findLimits()
	for _, find := range []func(){
		d.addMachines, d.raiseMost, d.raiseBudget, d.addMemory, d.lowerFloors, d.lowerTargets, d.lengthen, d.combine,
		d.lessDemand,
	} {
		if find(); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return d.out, nil
}

// diagnoser looks for mends.
type diagnoser struct {
	ctx        context.Context
	p          *Planner
	r          plan.Request // of a spec in which each device type has a worker
	listed     []int        // by DeviceTypeID: usable workers of the request's own spec
	untargeted bool         // targets do not count
	out        *capacity.Diagnosis
}

// change is what a mend changes of a request. The zero value changes nothing.
type change struct {
	spec   *serving.Spec // nil for the request's
	rates  []float64     // by AppID, queries/s; nil for the request's
	add    []int         // machines beyond those that can be used, by DeviceTypeID; nil for none
	budget float64       // $/h; 0 for the planner's own
}

// unlimited is a budget that limits nothing.
var unlimited = math.Inf(1)

// withEveryType returns the spec with a worker of each device type that has none, so that all types can be added to.
func withEveryType(spec *serving.Spec) *serving.Spec {
	more := make([]int, len(spec.DeviceTypes))
	for d := range more {
		if !spec.DeviceTypes[d].Part {
			more[d] = 1
		}
	}
	for _, w := range spec.Workers {
		more[w.DeviceType] = 0
	}
	out, _, err := spec.Resized(more)
	if err != nil {
		return spec // only for types that are parts, which are left out
	}
	return out
}

// altered returns a change of the apps. do gets a copy of them.
func (d *diagnoser) altered(do func(apps []serving.App)) *change {
	spec := *d.r.Spec
	spec.Apps = slices.Clone(spec.Apps)
	do(spec.Apps)
	return &change{spec: &spec}
}

// problem is the changed request as a problem, whether all apps can be served or not.
func (d *diagnoser) problem(x *change) *problem {
	r, p := d.r, *d.p
	if x.spec != nil {
		r.Spec = x.spec
	}
	if x.rates != nil {
		r.Rates = x.rates
	}
	if x.budget > 0 {
		p.Options.Budget = x.budget
	}
	if d.untargeted {
		spec := *r.Spec
		spec.Apps = slices.Clone(spec.Apps)
		for a := range spec.Apps {
			spec.Apps[a].AccuracyTarget = 0
		}
		r.Spec = &spec
	}
	return p.problem(&r, func(t serving.DeviceTypeID) int {
		if x.add != nil {
			return d.usable(t) + x.add[t]
		}
		return d.usable(t)
	})
}

// usable is how many machines of a device type the request can use.
func (d *diagnoser) usable(t serving.DeviceTypeID) int {
	x := &d.r.Spec.DeviceTypes[t]
	if x.Tenure == serving.Rented && x.MaxMachines > 0 {
		return min(d.listed[t], x.MaxMachines)
	}
	return d.listed[t]
}

// limited is the budget of a problem; unlimited without one.
func (m *problem) limited() float64 {
	if m.o.Budget > 0 && m.rents() {
		return m.o.Budget
	}
	return unlimited
}

// centTolerance is the money, in $/h, by which a pool may exceed a budget by rounding.
const centTolerance = 1e-9

// possible tells whether the program carries a changed request with machines in fractions that hold everything. Where
// it does not, no plan does.
func (d *diagnoser) possible(x *change) bool {
	m := d.problem(x)
	if !m.servesAll() {
		return false
	}
	_, cost, full := m.newMarket(1).relaxed()
	return full && cost <= m.limited()+centTolerance
}

// servesAll tells whether each stage of each open app has a variant on some machine.
func (m *problem) servesAll() bool {
	for a := range m.apps {
		if !m.apps[a].closed && !m.servedAnywhere(a) {
			return false
		}
	}
	return true
}

// enough tells whether whole machines, with what memory holds, carry a changed request.
func (d *diagnoser) enough(x *change) bool {
	_, ok := d.pool(x)
	return ok
}

// pool returns the cheapest machines found that carry a changed request.
func (d *diagnoser) pool(x *change) (counts, bool) {
	if d.ctx.Err() != nil || !d.possible(x) {
		return nil, false
	}
	m := d.problem(x)
	var last counts
	for _, h := range headrooms {
		n := m.all()
		if m.rents() {
			n = m.newMarket(h).cheapest()
		}
		if m.cost(n) > m.limited()+centTolerance {
			return nil, false
		}
		if last != nil && slices.Equal(n, last) {
			continue
		}
		y := m.newResidency(m.fresh(n), &work{mostWork, d.ctx})
		y.decide()
		if m.carriedBy(y.sites) {
			return n, true
		}
		if last = n; slices.Equal(n, m.all()) {
			return nil, false
		}
	}
	return nil, false
}

// carriedBy tells whether sites serve all of the demand at its targets.
func (m *problem) carriedBy(sites []site) bool {
	p := m.newProgram(sites)
	p.solve(m.demand())
	f := p.flows()
	for a := range m.apps {
		y := &m.apps[a]
		if !y.closed && (f.served[a] < y.rate*(1-lostTolerance) ||
			y.allowed < 1 && f.loss[a] > y.allowed+lostTolerance) {
			return false
		}
	}
	return true
}

// times is the request's demand times a factor, or only that of one app.
func (d *diagnoser) times(factor float64, only serving.AppID) []float64 {
	out := make([]float64, len(d.r.Spec.Apps))
	copy(out, d.r.Rates)
	for a := range out {
		if only == serving.None || only == serving.AppID(a) {
			out[a] *= factor
		}
	}
	return out
}

// multiples fills in how much of the demand can be carried, the same part of each app.
func (d *diagnoser) multiples() {
	at := func(x *change, ok func(*change) bool) float64 {
		return largest(func(by float64) bool {
			y := *x
			y.rates = d.times(by, serving.None)
			return ok(&y)
		})
	}
	d.out.Bound = at(&change{}, d.possible)
	if nearly := (1 - 4*boundTolerance) * d.out.Bound; nearly > 0 && d.enough(&change{
		rates: d.times(nearly, serving.None),
	}) {
		d.out.Multiple = nearly
		return
	}
	d.out.Multiple = at(&change{}, d.enough)
}

const (
	// searchTolerance is the relative precision of searched numbers.
	searchTolerance = 0.01
	// boundTolerance is that of bounds, which cost less.
	boundTolerance = 1e-3
	// farMultiple bounds multiples.
	farMultiple = 1 << 12
)

// largest returns the largest multiple found that is ok; 0 where even a small one is not.
func largest(ok func(by float64) bool) float64 {
	low, high := 0.0, 1.0
	for ; high <= farMultiple && ok(high); high *= 2 {
		low = high
	}
	if high > farMultiple {
		return farMultiple
	}
	for high-low > boundTolerance*high && high > 1e-3 {
		if middle := (low + high) / 2; ok(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// smallest returns about the smallest factor from 1 to most for which something is both possible and enough.
func smallest(most float64, possible, enough func(float64) bool) (float64, bool) {
	low := 1.0
	search := func(step float64, ok func(float64) bool) (float64, bool) {
		high := low * step
		for ; !ok(high); step *= step {
			if low = high; high >= most {
				return 0, false
			}
			high = min(high*step, most)
		}
		for high/low > 1+searchTolerance {
			if middle := math.Sqrt(low * high); ok(middle) {
				high = middle
			} else {
				low = middle
			}
		}
		return high, true
	}
	first, ok := search(2, possible)
	if !ok {
		return 0, false
	}
	if enough(first) {
		return first, true
	}
	low = first
	return search(1+2*searchTolerance, enough)
}

// order sorts added machines by what they cost, the cheapest first.
func order(mends []capacity.Mend) {
	slices.SortStableFunc(mends, func(a, b capacity.Mend) int { return cmp.Compare(a.CostPerHour, b.CostPerHour) })
}
