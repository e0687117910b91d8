package proteus

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/planner/capacity"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// Diagnose says what a fleet can carry of the demand in r, and what would mend it when that is not all. It keeps the
// planner's rules (which variants may be used where, in which batches, with which head-room) but leaves accuracy out.
// It is exact up to the planner's node limit and to one part in a thousand of the multiples. Objectives are searched to
// one per cent, assuming that more time never carries less. Every mend was tried and found to be enough. Diagnose fails
// when ctx ends, when the solver fails, or when no worker is up.
func Diagnose(ctx context.Context, p *Planner, r plan.Request) (*capacity.Diagnosis, error) {
	m, broken := p.read(r)
	if len(m.groups) == 0 {
		return nil, m.unservable(r.Believed(p.Profile), 0, broken)
	}
	out := &capacity.Diagnosis{Headroom: m.o.Headroom}
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
		d.workers, d.floors, d.objectives, d.options, d.demands, d.combined,
	} {
		if err := mend(ctx); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// diagnoser looks for mends.
type diagnoser struct {
	p      *Planner
	r      plan.Request
	m      *problem
	broken []bool // by VariantID
	out    *capacity.Diagnosis
}

// unserved finds the stages that nothing serves, with the floors and objectives at which they could be served.
func (d *diagnoser) unserved() {
	for s := range d.m.stages {
		st := &d.m.stages[s]
		if len(st.pairs) > 0 {
			continue
		}
		u := capacity.UnservedStage{App: st.App, Stage: serving.StageID(s), Variant: serving.None, Device: serving.None}
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

// highestFloor returns the accuracy of the most accurate variant that could serve a stage if its app had no floor; 0
// for none.
func (d *diagnoser) highestFloor(s serving.StageID) float64 {
	m, _ := d.p.read(d.without(d.m.stages[s].App))
	best := 0.0
	for _, k := range m.stages[s].pairs {
		best = max(best, m.spec.Variants[m.pairs[k].variant].Accuracy)
	}
	return best
}

// without returns the request with no accuracy floor for an app.
func (d *diagnoser) without(a serving.AppID) plan.Request {
	return d.altered(func(apps []serving.App) { apps[a].Floor = 0 })
}

// altered returns the request with other apps. change gets a copy of them.
func (d *diagnoser) altered(change func(apps []serving.App)) plan.Request {
	spec := *d.r.Spec
	spec.Apps = slices.Clone(spec.Apps)
	change(spec.Apps)
	out := d.r
	out.Spec = &spec
	return out
}

// needed returns the shortest objective of a stage's app with which a variant serves the stage on a device type; 0 for
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
	return capacity.LeastObjective(d.r.Spec.Apps[d.m.stages[s].App].SLO.Latency, 1, can)
}

// depth returns the ratio of an app's objective to a stage's budget.
func (d *diagnoser) depth(s serving.StageID) float64 {
	st := &d.m.stages[s]
	return math.Round(float64(d.r.Spec.Apps[st.App].SLO.Latency) / float64(st.Budget))
}

// minRelief is the least relative increase of the multiple without a stage that makes the stage a bottleneck. It
// exceeds the error of the search.
const minRelief = 5 * multipleTolerance

// bottlenecks finds the stages whose demand keeps more from being carried.
func (d *diagnoser) bottlenecks(ctx context.Context) error {
	if len(d.out.Unserved) > 0 {
		rest, _, _, err := d.p.largestMultiple(ctx, d.m, func(s serving.StageID) role {
			if len(d.m.stages[s].pairs) == 0 {
				return absent
			}
			return scaled
		})
		for _, u := range d.out.Unserved {
			d.out.Bottlenecks = append(d.out.Bottlenecks, capacity.Bottleneck{
				App: u.App, Stage: u.Stage, Without: rest,
			})
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
			d.out.Bottlenecks = append(d.out.Bottlenecks, capacity.Bottleneck{
				App: d.m.stages[s].App, Stage: serving.StageID(s), Without: without,
			})
		}
	}
	slices.SortStableFunc(d.out.Bottlenecks, func(a, b capacity.Bottleneck) int {
		return cmp.Compare(b.Without, a.Without)
	})
	return nil
}

// bottleneckApps returns the apps with a bottleneck, the worst first. If no single stage is one, because several are
// equally narrow, it returns all apps.
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
