package fluid

import (
	"context"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/internal/planner/diagnosis"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// Diagnose says what a fleet can carry of the demand in r, and what would mend it when that is not all. Machines take
// turns, graphs share their objective as in a plan, and rented machines count up to DeviceType.MaxMachines and the
// planner's budget. A demand that is carried while an app misses its target is asked for at its targets: what the
// answer says of carrying then includes them.
//
// Every remedy is enough by the program with whole machines and with what memory holds; nothing is simulated. Remedies
// are searched to one per cent, assuming that more never carries less. Numbers of machines are the smallest that the
// program finds; Proven says that memory asks for no more. Diagnose fails when ctx ends or no worker is up.
func Diagnose(ctx context.Context, p *Planner, r plan.Request) (*diagnosis.Diagnosis, error) {
	down, _ := capacity.Unusable(r.Spec, r.Snapshot)
	d := &diagnoser{ctx: ctx, p: p, untargeted: true}
	d.Search = diagnosis.Search{Request: r, Possible: d.possible, Enough: d.enough}
	d.Out.Headroom = 1
	any := false
	for _, workers := range capacity.UsableWorkers(r.Spec, down) {
		d.listed = append(d.listed, len(workers))
		any = any || len(workers) > 0
	}
	if !any {
		return nil, capacity.Unserved(p.Profile, r.Spec, capacity.Asked{Fraction: 1}, nil, nil)
	}
	d.Request.Spec = withEveryType(r.Spec)
	if d.Out.Carried = d.enough(&diagnosis.Change{}); d.Out.Carried {
		d.untargeted = false
		d.Out.Carried = d.enough(&diagnosis.Change{})
	}
	d.multiples()
	m := d.problem(&diagnosis.Change{})
	return d.Run(ctx.Err, func() { d.findUnserved(m) }, func() { d.findBottlenecks(m) }, d.findLimits, d.addMachines,
		d.raiseMost, d.raiseBudget, d.addMemory, d.LowerFloors, d.lowerTargets, d.Lengthen, d.combine, d.lessDemand)
}

// diagnoser looks for remedies.
type diagnoser struct {
	diagnosis.Search // of a spec in which each device type has a worker
	ctx              context.Context
	p                *Planner
	listed           []int // by DeviceTypeID: usable workers of the request's own spec
	untargeted       bool  // targets do not count
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

// problem is the changed request as a problem, whether all apps can be served or not.
func (d *diagnoser) problem(x *diagnosis.Change) *problem {
	r, p := d.Request, *d.p
	if x.Spec != nil {
		r.Spec = x.Spec
	}
	if x.Rates != nil {
		r.Rates = x.Rates
	}
	if x.Budget > 0 {
		p.Options.Budget = x.Budget
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
		if x.Add != nil {
			return d.usable(t) + x.Add[t]
		}
		return d.usable(t)
	})
}

// usable is how many machines of a device type the request can use.
func (d *diagnoser) usable(t serving.DeviceTypeID) int {
	x := &d.Request.Spec.DeviceTypes[t]
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
func (d *diagnoser) possible(x *diagnosis.Change) bool {
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
func (d *diagnoser) enough(x *diagnosis.Change) bool {
	_, ok := d.pool(x)
	return ok
}

// pool returns the cheapest machines found that carry a changed request.
func (d *diagnoser) pool(x *diagnosis.Change) (counts, bool) {
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
	out := make([]float64, len(d.Request.Spec.Apps))
	copy(out, d.Request.Rates)
	for a := range out {
		if only == serving.None || only == serving.AppID(a) {
			out[a] *= factor
		}
	}
	return out
}

// multiples fills in how much of the demand can be carried, the same part of each app.
func (d *diagnoser) multiples() {
	at := func(x *diagnosis.Change, ok func(*diagnosis.Change) bool) float64 {
		return largest(func(by float64) bool {
			y := *x
			y.Rates = d.times(by, serving.None)
			return ok(&y)
		})
	}
	d.Out.Bound = at(&diagnosis.Change{}, d.possible)
	if nearly := (1 - 4*boundTolerance) * d.Out.Bound; nearly > 0 && d.enough(&diagnosis.Change{
		Rates: d.times(nearly, serving.None),
	}) {
		d.Out.Multiple = nearly
		return
	}
	d.Out.Multiple = at(&diagnosis.Change{}, d.enough)
}

const (
	// boundTolerance is the relative precision of bounds.
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
