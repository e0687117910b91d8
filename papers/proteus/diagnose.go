package proteus

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/diagnosis"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// Diagnose says what a fleet can carry of the demand in r, and what would mend it when that is not all. It keeps the
// planner's rules (which variants may be used where, in which batches, with which head-room) but leaves accuracy out.
// It is exact up to the planner's node limit and to one part in a thousand of the multiples. Objectives are searched to
// one per cent, assuming that more time never carries less. Every remedy was tried and found to be enough. Diagnose
// fails when ctx ends, when the solver fails, or when no worker is up.
func Diagnose(ctx context.Context, p *Planner, r plan.Request) (*diagnosis.Diagnosis, error) {
	d := &diagnoser{ctx: ctx, p: p}
	d.Search = diagnosis.Search{Request: r, Enough: d.enough}
	d.m, d.broken = p.read(r)
	if len(d.m.groups) == 0 {
		return nil, d.m.unservable(r.Believed(p.Profile), 0, d.broken)
	}
	d.Out.Headroom = d.m.o.Headroom
	d.Out.Carried = d.carries(d.m)
	d.Out.Multiple, d.Out.Bound = d.multiple(everyStage(scaled))
	return d.Run(func() error { return d.err }, d.unserved, d.bottlenecks, d.workers, d.LowerFloors, d.Lengthen,
		d.options, d.demands, d.combined)
}

// diagnoser looks for remedies.
type diagnoser struct {
	diagnosis.Search
	ctx    context.Context
	p      *Planner
	m      *problem
	broken []bool // by VariantID
	err    error  // the first; nothing is carried after it
}

// enough tells whether a changed request is carried.
func (d *diagnoser) enough(x *diagnosis.Change) bool {
	r := d.Request
	if x.Spec != nil {
		r.Spec = x.Spec
	}
	m, _ := d.p.read(r)
	return d.carries(m)
}

func (d *diagnoser) carries(m *problem) (ok bool) {
	if d.err == nil {
		ok, d.err = d.p.carriesAll(d.ctx, m)
	}
	return ok
}

// multiple is the largest multiple that is carried, and a bound on it.
func (d *diagnoser) multiple(roles func(serving.StageID) role) (multiple, bound float64) {
	if d.err == nil {
		multiple, bound, _, d.err = d.p.largestMultiple(d.ctx, d.m, roles)
	}
	return multiple, bound
}

// unserved finds the stages that nothing serves, with the floors and objectives at which they could be served.
func (d *diagnoser) unserved() {
	for s := range d.m.stages {
		st := &d.m.stages[s]
		if len(st.pairs) > 0 {
			continue
		}
		u := diagnosis.UnservedStage{
			App: st.App, Stage: serving.StageID(s), Variant: serving.None, Device: serving.None,
			Floor: d.highestFloor(serving.StageID(s)),
		}
		for _, g := range d.m.groups {
			if g.stage != serving.None && g.stage != u.Stage {
				continue
			}
			for _, v := range d.Request.Spec.Stages[s].Variants {
				if l := d.needed(v, g.device, u.Stage); l > 0 && (u.SLO == 0 || l < u.SLO) {
					u.SLO, u.Variant, u.Device = l, v, g.device
				}
			}
		}
		d.Out.Unserved = append(d.Out.Unserved, u)
	}
}

// highestFloor returns the accuracy of the most accurate variant that could serve a stage if its app had no floor; 0
// for none.
func (d *diagnoser) highestFloor(s serving.StageID) float64 {
	r := d.Request
	r.Spec = d.Altered(func(apps []serving.App) { apps[d.m.stages[s].App].Floor = 0 }).Spec
	m, _ := d.p.read(r)
	best := 0.0
	for _, k := range m.stages[s].pairs {
		best = max(best, m.spec.Variants[m.pairs[k].variant].Accuracy)
	}
	return best
}

// needed returns the shortest objective of a stage's app with which a variant serves the stage on a device type; 0 for
// none.
func (d *diagnoser) needed(v serving.VariantID, device serving.DeviceTypeID, s serving.StageID) time.Duration {
	if d.broken[v] {
		return 0
	}
	can := func(slo time.Duration) bool {
		limit, _ := d.m.rule().Capacity(d.Request.Believed(d.p.Profile), d.Request.Spec, v, device,
			time.Duration(float64(slo)/d.depth(s)))
		return limit > 0
	}
	return diagnosis.LeastObjective(d.Request.Spec.Apps[d.m.stages[s].App].SLO.Latency, 1, can)
}

// depth returns the ratio of an app's objective to a stage's budget.
func (d *diagnoser) depth(s serving.StageID) float64 {
	st := &d.m.stages[s]
	return math.Round(float64(d.Request.Spec.Apps[st.App].SLO.Latency) / float64(st.Budget))
}

// bottlenecks finds the stages whose demand keeps more from being carried.
func (d *diagnoser) bottlenecks() {
	d.FindBottlenecks(d.Out.Multiple, func(stages []serving.StageID) float64 {
		rest, _ := d.multiple(func(s serving.StageID) role {
			if slices.Contains(stages, s) {
				return absent
			}
			return scaled
		})
		return rest
	})
}
