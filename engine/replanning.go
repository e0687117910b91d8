package engine

import (
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

const (
	// planRetry is the pause after a failed plan for a spec that has grown.
	planRetry = time.Second
	// mixCount is how many queries of an app are seen before their sizes replace the expected ones.
	mixCount = 100
)

// replanning decides when a plan is requested, and for what. The scaler decides; the request carries everything that
// the plan is made from, as it is in this step.
type replanning struct {
	*world
	agenda   *agenda
	out      *decisions
	usage    *usage
	force    *inForce
	beliefs  *beliefs
	content  *content
	queries  *queries
	health   *health
	machines *machines

	scaler scale.Scaler
	traits scale.Traits
	view   scale.View

	known     *plan.Known  // of the spec; nil for the one that planners were made with
	last      uint64       // number of the last request
	asked     bool         // there was one
	requested bool         // it has not been answered
	at        serving.Time // when it was made
	nextLook  serving.Time // when the scaler wants to decide again; 0 before the first time
	retryAt   serving.Time // when a failed plan for a spec that has grown is requested again
}

// overdue reports whether a plan for the present spec has to be requested, whatever the scaler decides.
func (r *replanning) overdue() bool { return r.force.outdated && !r.requested && r.now >= r.retryAt }

// decide calls the scaler when it is due or the fleet changed, and requests a plan.
func (r *replanning) decide() {
	r.health.lapse()
	overdue := r.overdue()
	if !r.agenda.scaler && !overdue && (r.nextLook == 0 || r.now < r.nextLook) {
		return
	}
	r.agenda.scaler = false
	r.view = scale.View{
		Now: r.now, Spec: r.spec, Fleet: &r.fleet.View, Monitor: &r.monitor.View, Plan: r.force.plan,
		Requested: r.requested, LastRequest: r.at, BasisChanged: r.agenda.basisChanged,
		Declared: r.agenda.declared, Waiting: r.queries.waiting,
		Idle: r.queries.idle, Factors: r.content.view(), Start: r.machines.longest,
	}
	if r.asked && r.now == 0 {
		r.view.LastRequest = 1 // 0 stands for none, and where no time goes by another one would follow each answer
	}
	replan, next := r.scaler.Decide(&r.view)
	if r.nextLook = next; next <= r.now {
		r.violated(fmt.Errorf("engine: scaler %q asked to be called again at %v, which is not after %v",
			r.scaler.Name(), next, r.now))
		r.nextLook = serving.Never
	}
	if (replan || overdue) && !r.requested {
		r.request()
	}
}

// request requests a plan.
func (r *replanning) request() {
	r.last++
	r.asked, r.requested, r.at = true, true, r.now
	x := &plan.Request{
		Snapshot: r.fleet.Snapshot(r.last, r.now), Rates: make([]float64, len(r.spec.Apps)),
		Mixes: r.mixes(), Prices: r.usage.currentPrices(), Dispersions: r.dispersions(), Recent: r.recent(),
		Known: r.known,
	}
	r.health.report(x.Snapshot)
	r.machines.report(x.Snapshot)
	if j := r.traits.Judge; j != nil {
		x.Experience = j.Experience()
	}
	r.scaler.Demand(&r.view, x.Rates)
	r.content.ask(x)
	r.raise(x.Rates)
	x.Beliefs = r.beliefs.forPlanner()
	if x.Spec = profile.Stretched(r.spec, r.beliefs.current, x.Mixes); x.FanOuts != nil {
		x.Spec = x.Spec.WithFanOuts(x.FanOuts)
	}
	r.out.add(RequestPlan, Requested).Request = x
}

// dispersions returns by app how unevenly queries arrive.
func (r *replanning) dispersions() []float64 {
	out := make([]float64, len(r.spec.Apps))
	for a := range out {
		out[a] = r.monitor.Dispersion(r.now, serving.AppID(a))
	}
	return out
}

// recent returns by app the mean demand of the last seconds, in queries/s.
func (r *replanning) recent() []float64 {
	out := make([]float64, len(r.spec.Apps))
	for a := range out {
		out[a] = scale.Recent(&r.view, serving.AppID(a))
	}
	return out
}

// raise lifts the demand of a plan to the declared rates.
func (r *replanning) raise(rates []float64) {
	for a := range rates {
		if !r.spec.Apps[a].Closed {
			rates[a] = max(rates[a], r.monitor.Declared(serving.AppID(a)))
		}
	}
}

// mixes returns by app the sizes of queries that a plan is made for.
func (r *replanning) mixes() []serving.Mix {
	out := make([]serving.Mix, len(r.spec.Apps))
	for a := range out {
		if out[a] = r.spec.Apps[a].Mix; r.monitor.SizesSeen(serving.AppID(a)) >= mixCount {
			out[a] = r.monitor.Mix(serving.AppID(a))
		}
	}
	return out
}

// stale reports whether a plan, or a failure, answers an older request than the last.
func (r *replanning) stale(seq uint64) bool { return seq < r.last }

// answered records that the last request led to a plan. It returns the plan with the factors of the request.
func (r *replanning) answered(p *plan.Plan) *plan.Plan {
	r.requested, r.agenda.scaler = false, true
	if p.Snapshot == r.last {
		return r.content.withFactors(p)
	}
	return p
}

// failed records that a request led to no plan. It reports whether it was the last one.
func (r *replanning) failed(seq uint64) bool {
	if seq != r.last {
		return false
	}
	r.requested, r.agenda.scaler = false, true
	r.retryAt = r.now.Add(planRetry)
	return true
}

// grow requests a plan for a spec that has grown, of which known was measured. A plan under way for the one before
// becomes stale.
func (r *replanning) grow(known *plan.Known, fresh *serving.Fresh) {
	if f, ok := r.scaler.(Forgetter); ok {
		f.Forget(r.now, fresh)
	}
	r.last++
	r.known = known
	r.requested, r.retryAt = false, 0
	r.force.outdated = true
	r.agenda.changeBasis()
}

// arrived counts a query of an open app, and tells the scaler about a call of an idle one. Refused queries are calls as
// well.
func (r *replanning) arrived(a serving.AppID) {
	r.monitor.Add(r.now, a)
	idle, was := r.queries.invoked(a)
	if w := r.traits.Waker; was && w != nil && w.Invoked(r.now, a, idle) {
		r.agenda.scaler = true
	}
}

// next returns when the scaler decides again if nothing happens.
func (r *replanning) next() serving.Time {
	next := r.nextLook
	if next == 0 {
		next = serving.Never
	}
	next = min(next, r.health.fitAgain)
	if r.force.outdated && !r.requested {
		next = min(next, max(r.retryAt, r.now+1))
	}
	return next
}
