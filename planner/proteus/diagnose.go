package proteus

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// Diagnosis says how much of a demand a fleet carries and, where that is not all, why not and what would mend it.
type Diagnosis struct {
	// Headroom is the factor on the demand that the planner plans for. What follows includes it.
	Headroom float64
	// Carried tells that all of the demand is.
	Carried bool
	// Multiple of the demand, the same for every app, is the largest that was found to be carried whatever the
	// accuracy. Bound is the largest that can be, as proven. 0 when there is a stage that nothing serves.
	Multiple, Bound float64
	// Unserved are the stages that no variant can serve on any worker that is there.
	Unserved []Unserved
	// Bottlenecks are the stages without which more could be carried, those first without which most could; nil when
	// all is carried.
	Bottlenecks []Bottleneck
	// Mends each let all of the demand be carried by themselves: added workers first, the cheapest first, then lower
	// floors, longer objectives, other options of the planner, less demand. Nil when all is carried.
	Mends []Mend
}

// Unserved is a stage that nothing can serve.
type Unserved struct {
	App   serving.AppID
	Stage serving.StageID
	// Floor is the highest accuracy floor with which a variant meets the objective on a worker that is there; 0 for
	// none.
	Floor float64
	// SLO is the shortest objective of the app within which Variant, which is not below the floor, serves the stage on
	// Device, of which there is a worker; 0 when none was measured or fits.
	SLO     time.Duration
	Variant serving.VariantID
	Device  serving.DeviceTypeID
}

// Bottleneck is a stage that keeps the fleet from carrying more.
type Bottleneck struct {
	App   serving.AppID
	Stage serving.StageID
	// Without is the multiple of the demand that could be carried if the stage, or with a stage that nothing serves all
	// such, needed nothing; +Inf when there is no other.
	Without float64
}

// Mend is a change that lets the demand be carried: of one kind, or of floors and objectives together where no one kind
// is enough.
type Mend struct {
	Add    []Addition
	Floors []Floor
	SLOs   []Objective
	Demand []Demand
	// AnyVariant plans with all variants of an app where a system restricts them; FreePlace lets workers change the app
	// they serve where it does not.
	AnyVariant, FreePlace bool
	// CostPerHour is the price of what is added, in $/h.
	CostPerHour float64
	// Proven tells of Add and Demand that nothing less, or cheaper, is enough.
	Proven bool
}

// Addition is so many workers of a device type, more than there are.
type Addition struct {
	Device  serving.DeviceTypeID
	Workers int
}

// Floor is an accuracy floor that an app would have to accept.
type Floor struct {
	App serving.AppID
	To  float64
}

// Objective is a latency objective that an app would have to accept.
type Objective struct {
	App serving.AppID
	To  time.Duration
}

// Demand is the most that an app may ask for, in queries/s, without head-room.
type Demand struct {
	App serving.AppID
	To  float64
}

// Diagnose says what a fleet can carry of the demand in r, by the planner's own rules (which variants may be used
// where, in which batches, with which head-room) but whatever the accuracy, and what would mend it when that is not
// all. It is exact up to the planner's node limit and to one part in a thousand of the multiples; objectives are
// searched to one per cent, on the assumption that more time never carries less. Every mend was tried: it is enough. It
// fails when ctx ends, when the solver does, or when no worker is left.
func Diagnose(ctx context.Context, p *Planner, r plan.Request) (*Diagnosis, error) {
	m, broken := p.read(r)
	if len(m.groups) == 0 {
		return nil, m.unservable(r.Believed(p.Profile), 0, broken)
	}
	out := &Diagnosis{Headroom: m.o.Headroom}
	var err error
	if out.Carried, err = p.carriesAll(ctx, m); err != nil {
		return nil, err
	}
	if out.Multiple, out.Bound, _, err = p.largestMultiple(ctx, m, everyStage(scaled)); err != nil {
		return nil, err
	}
	if out.Carried {
		out.Multiple = max(out.Multiple, 1)
		out.Bound = max(out.Bound, out.Multiple)
		return out, nil
	}
	d := &diagnoser{p: p, r: r, m: m, broken: broken, out: out}
	d.unserved()
	if err := d.bottlenecks(ctx); err != nil {
		return nil, err
	}
	for _, mend := range []func(context.Context) error{
		d.workers, d.floors, d.objectives, d.options, d.demands, d.together,
	} {
		if err := mend(ctx); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// doctor looks for mends.
type diagnoser struct {
	p      *Planner
	r      plan.Request
	m      *problem
	broken []bool // by VariantID
	out    *Diagnosis
}

// unserved finds the stages that nothing serves, and what would let them be served.
func (d *diagnoser) unserved() {
	for s := range d.m.stages {
		st := &d.m.stages[s]
		if len(st.pairs) > 0 {
			continue
		}
		u := Unserved{App: st.App, Stage: serving.StageID(s), Variant: serving.None, Device: serving.None}
		u.Floor = d.highestFloor(serving.StageID(s))
		for _, g := range d.m.groups {
			if g.stage != serving.None && g.stage != u.Stage {
				continue
			}
			for _, v := range d.r.Spec.Stages[s].Variants {
				if l := d.needed(v, g.device, u.Stage); l > 0 && (u.SLO == 0 || l < u.SLO) {
					u.SLO, u.Variant, u.Device = l, v, g.device
				}
			}
		}
		d.out.Unserved = append(d.out.Unserved, u)
	}
}

// highestFloor is the accuracy of the most accurate variant that could serve a stage if its app had no floor; 0 for
// none.
func (d *diagnoser) highestFloor(s serving.StageID) float64 {
	m, _ := d.p.read(d.without(d.m.stages[s].App))
	best := 0.0
	for _, k := range m.stages[s].pairs {
		best = max(best, m.spec.Variants[m.pairs[k].variant].Accuracy)
	}
	return best
}

// without is the request with no accuracy floor for an app.
func (d *diagnoser) without(a serving.AppID) plan.Request {
	return d.altered(func(apps []serving.App) { apps[a].Floor = 0 })
}

// altered is the request with other apps.
func (d *diagnoser) altered(change func(apps []serving.App)) plan.Request {
	spec := *d.r.Spec
	spec.Apps = slices.Clone(spec.Apps)
	change(spec.Apps)
	out := d.r
	out.Spec = &spec
	return out
}

// needed is the shortest objective of its app within which a variant serves a stage on a device type at all; 0 for
// none.
func (d *diagnoser) needed(v serving.VariantID, device serving.DeviceTypeID, s serving.StageID) time.Duration {
	if d.broken[v] {
		return 0
	}
	can := func(slo time.Duration) bool {
		limit, _ := d.m.rule().Capacity(d.r.Believed(d.p.Profile), d.r.Spec, v, device,
			time.Duration(float64(slo)/d.depth(s)))
		return limit > 0
	}
	app := &d.r.Spec.Apps[d.m.stages[s].App]
	low, high := app.SLO.Latency, longestSLO
	if low >= high || !can(high) {
		return 0
	}
	for high-low > 1 {
		if mid := low + (high-low)/2; can(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	if round := roundUp(high); can(round) {
		return round
	}
	return high
}

// depth is how many times longer than a stage's part its app's objective is.
func (d *diagnoser) depth(s serving.StageID) float64 {
	st := &d.m.stages[s]
	return math.Round(float64(d.r.Spec.Apps[st.App].SLO.Latency) / float64(st.Budget))
}

// longestSLO is the longest objective that is thought of.
const longestSLO = time.Hour

// roundUp makes an objective one that a person would write: three digits or so, half a per cent off at most.
func roundUp(d time.Duration) time.Duration {
	unit := 10 * time.Microsecond
	for unit*2000 < d {
		unit *= 10
	}
	return (d + unit - 1) / unit * unit
}

// relief is by how much the multiple has to rise without a stage for it to be a bottleneck: more than the search is
// off.
const minRelief = 5 * multipleTolerance

// bottlenecks tries which stages' demand keeps the rest from being carried.
func (d *diagnoser) bottlenecks(ctx context.Context) error {
	if len(d.out.Unserved) > 0 {
		rest, _, _, err := d.p.largestMultiple(ctx, d.m, func(s serving.StageID) role {
			if len(d.m.stages[s].pairs) == 0 {
				return absent
			}
			return scaled
		})
		for _, u := range d.out.Unserved {
			d.out.Bottlenecks = append(d.out.Bottlenecks, Bottleneck{App: u.App, Stage: u.Stage, Without: rest})
		}
		return err
	}
	for s := range d.m.stages {
		without, _, _, err := d.p.largestMultiple(ctx, d.m, func(x serving.StageID) role {
			if int(x) == s {
				return absent
			}
			return scaled
		})
		if err != nil {
			return err
		}
		if without > d.out.Multiple*(1+minRelief) {
			d.out.Bottlenecks = append(d.out.Bottlenecks, Bottleneck{
				App: d.m.stages[s].App, Stage: serving.StageID(s), Without: without,
			})
		}
	}
	slices.SortStableFunc(d.out.Bottlenecks, func(a, b Bottleneck) int { return cmp.Compare(b.Without, a.Without) })
	return nil
}

// narrow are the apps with a bottleneck, those first that matter most. When no single stage is one, which happens when
// several are equally narrow, all apps are.
func (d *diagnoser) bottleneckApps() []serving.AppID {
	var out []serving.AppID
	for _, b := range d.out.Bottlenecks {
		if !slices.Contains(out, b.App) {
			out = append(out, b.App)
		}
	}
	if out == nil {
		for a := range d.r.Spec.Apps {
			out = append(out, serving.AppID(a))
		}
	}
	return out
}
