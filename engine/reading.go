package engine

import (
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/report"
)

// Fleet returns a view of what runs and waits. It shows the engine's present state after every step.
func (e *Engine) Fleet() *fleet.View { return &e.fleet.View }

// Spec returns the present spec. It must not be changed.
func (e *Engine) Spec() *serving.Spec { return e.spec }

// Plan returns the plan in force, or nil. It must not be changed.
func (e *Engine) Plan() *plan.Plan { return e.force.plan }

// Planned reports whether the plan in force was made for the present spec.
func (e *Engine) Planned() bool { return !e.force.outdated }

// Broken reports whether loads of a variant failed of late, several times in a row.
func (e *Engine) Broken(v serving.VariantID) bool { return e.health.variantUnfit(v) }

// Changes counts what may change which variants are ready or broken: while it stays, they stay.
func (e *Engine) Changes() uint64 { return e.fleet.Changes() + e.health.changes }

// Pending returns how many accepted queries have not ended.
func (e *Engine) Pending() int { return e.queries.records.ids.n }

// Waiting returns how many tasks of an app wait.
func (e *Engine) Waiting(a serving.AppID) int { return e.queries.waiting[a] }

// Wakes reports whether queries start instances of apps without any.
func (e *Engine) Wakes() bool { return e.replanning.traits.Waker != nil }

// SecondAnswers reports whether it counts how sure variants are of their answers.
func (e *Engine) SecondAnswers() bool { return e.queries.seconds }

// Price returns what a machine of a device type costs now, in $/h.
func (e *Engine) Price(d serving.DeviceTypeID) float64 { return e.usage.price(d) }

// Declared returns the rate, in queries/s, that the clients of an app have declared.
func (e *Engine) Declared(a serving.AppID) float64 { return e.monitor.Declared(a) }

// Learned counts what the scaler has learned of an app, and returns since when the app has been idle, serving.Never
// while it is not. Remember returns something new only after one of them has changed.
func (e *Engine) Learned(a serving.AppID) (n int, idle serving.Time) { return e.replanning.learned(a) }

// Remember returns a record of the scaler's knowledge of an app's idle times at now; nil without any. The slice is the
// caller's.
func (e *Engine) Remember(a serving.AppID, now serving.Time) []byte {
	return e.replanning.remember(a, now)
}

// Usage returns the consumption from the start until now, which must not be before the last step. Dollars run from the
// launch of a worker's first instance to the end of its last, at the prices in force meanwhile. Slot time runs from the
// launch of each instance; busy slot time is that of finished and running batches. Threads and accelerators of a part
// count while its instance lives, those of a machine while any instance is on it as a whole. Wasted is of batches that
// have ended.
func (e *Engine) Usage(now serving.Time) report.Usage {
	out := e.usage.until(now)
	out.Wasted = e.queries.wasted
	return out
}

// MachineTime returns the time of the batches that have ended so far of an app's queries of a tenant, which is a number
// as in serving.Query: of each batch its part by items. It is 0 where there are no tenants.
func (e *Engine) MachineTime(a serving.AppID, tenant int) time.Duration {
	if int(a) >= len(e.queries.shares.apps) {
		return 0
	}
	return e.queries.shares.apps[a].tenants[tenant].used
}

// Stale reports whether an input concerns an instance that no longer exists. Both drivers leave such inputs out.
func Stale(e *Engine, in *Input) bool {
	return (in.Kind == BatchDone || in.Kind == InstanceChanged) && e.fleet.Instance(in.Instance) == nil
}

// Discards reports whether an answer counts no more that a batch brings to some items of a stage of a graph: it is a
// second one, and the first has gone on.
func Discards(e *Engine, in *Input, query serving.QueryID, offset int) bool {
	i := e.fleet.Instance(in.Instance)
	for k := 0; i != nil && k < i.Running(); k++ {
		b := i.Batch(k)
		for ref := b.Head; b.ID == in.Batch && ref != fleet.Nil; ref = e.fleet.Next(ref) {
			if t := e.fleet.Task(ref); t.Query() == query && int(t.Offset()) == offset {
				return t.Hint() > 0 && !e.queries.flows.keeps(ref)
			}
		}
	}
	return false
}

// Check verifies all invariants and returns the first violation, by the state, the driver or a policy. Tests call it
// after every Step.
func (e *Engine) Check() error {
	if e.violation != nil {
		return e.violation
	}
	for _, check := range []func() error{
		e.fleet.Check, e.queries.check, e.instances.check, e.warm.check, e.agenda.check, e.usage.check, e.force.check,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}
