package board

import (
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// plans has the latest plans and failures, oldest first.
type plans struct {
	list    []planned
	n       int
	under   bool // a request is under way: for what, why, for which rates, and since when
	spec    *serving.Spec
	why     engine.Reason
	rates   []float64
	askedAt serving.Time
	seq     uint64 // of the newest request
}

// planned is a plan, or a request that led to none.
type planned struct {
	number  int
	spec    *serving.Spec // that it was made for
	at      serving.Time
	asked   serving.Time
	why     string
	rates   []float64 // seen when it was asked for
	plan    *plan.Plan
	failure string
	dropped bool // older than the newest request: the engine ignores it
}

func (p *plans) asked(now serving.Time, d *engine.Decision) {
	p.why, p.rates, p.spec = d.Reason, d.Request.Rates, d.Request.Spec
	p.under, p.askedAt, p.seq = true, now, d.Request.Snapshot.Seq
}

// grown takes a growth: the engine ignores a plan that is under way.
func (p *plans) grown() { p.seq++ }

func (p *plans) add(spec *serving.Spec, x planned) {
	p.n++
	x.spec = spec
	x.number = p.n
	x.why, x.asked = "made before the start", x.at
	if p.under {
		x.why, x.rates, x.asked = p.why.String(), p.rates, p.askedAt
		x.spec = p.spec
	} else if p.n > 1 {
		x.why = "handed in from outside"
	}
	p.under = false
	if len(p.list) == mostPlans {
		p.list = append(p.list[:0], p.list[1:]...)
	}
	p.list = append(p.list, x)
}

func (p *plans) made(now serving.Time, spec *serving.Spec, made *plan.Plan) {
	p.add(spec, planned{at: now, plan: made, dropped: made.Snapshot < p.seq})
}

// failed takes a failure. The engine repeats that of a planner in a decision: it counts once.
func (p *plans) failed(now serving.Time, spec *serving.Spec, f *engine.PlanFailure) {
	if f == nil {
		return
	}
	if n := len(p.list); n > 0 {
		if last := &p.list[n-1]; last.at == now && (last.failure == f.Err || last.plan != nil) {
			last.failure, last.plan = f.Err, nil
			return
		}
	}
	p.add(spec, planned{at: now, failure: f.Err})
}

// inForce returns the plan that the engine follows; nil for none.
func (p *plans) inForce() *planned {
	for k := len(p.list) - 1; k >= 0; k-- {
		if p.list[k].plan != nil && !p.list[k].dropped {
			return &p.list[k]
		}
	}
	return nil
}
