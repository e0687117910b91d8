package engine

import (
	"github.com/sluice-serving/sluice/measure/report"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Fleet gives read access to what runs and waits. It follows the engine from step to step.
func (e *Engine) Fleet() *fleet.View { return &e.fleet.View }

// Spec returns the world as it is. It must not be changed.
func (e *Engine) Spec() *serving.Spec { return e.spec }

// Plan returns the plan in force, or nil. It must not be changed.
func (e *Engine) Plan() *plan.Plan { return e.force.plan }

// Planned tells whether the plan in force was made for the world as it is.
func (e *Engine) Planned() bool { return !e.force.outdated }

// Broken tells whether a variant could not be loaded of late, several times in a row.
func (e *Engine) Broken(v serving.VariantID) bool { return e.health.variantUnfit(v) }

// Pending returns how many accepted queries have not ended.
func (e *Engine) Pending() int { return e.queries.records.ids.n }

// Waiting returns how many tasks of an app wait.
func (e *Engine) Waiting(a serving.AppID) int { return e.queries.waiting[a] }

// Wakes tells whether apps that nothing runs of are started by their queries.
func (e *Engine) Wakes() bool { return e.replanning.traits.Waker != nil }

// Price returns what a machine of a device type costs now, in $/h.
func (e *Engine) Price(d serving.DeviceTypeID) float64 { return e.usage.price(d) }

// Declared returns at which rate, in queries/s, the clients of an app have said that they will send.
func (e *Engine) Declared(a serving.AppID) float64 { return e.monitor.Declared(a) }

// Learned counts what the scaler has learned of an app, and tells since when the app has had nothing to do,
// serving.Never while it has. Remember returns something else once one of them has changed.
func (e *Engine) Learned(a serving.AppID) (n int, idle serving.Time) { return e.replanning.learned(a) }

// Remember returns what the scaler knows of an app's idle times at now; nil where it knows nothing or does not learn.
// The slice is the caller's.
func (e *Engine) Remember(a serving.AppID, now serving.Time) []byte {
	return e.replanning.remember(a, now)
}

// Usage returns what has been consumed from the start until now, which is not before the last step: dollars from the
// launch of a worker's first instance to the end of its last, at the prices in force meanwhile; slot time from the
// launch of each instance, busy slot time of its finished and running batches; threads and accelerators of a part while
// its instance lives, of a machine while any instance is on it as a whole.
func (e *Engine) Usage(now serving.Time) report.Usage { return e.usage.until(now) }

// Stale tells whether an input concerns an instance that no longer exists: what a lost or stopped instance still had to
// say. Drivers leave such inputs out, both alike.
func Stale(e *Engine, in *Input) bool {
	return (in.Kind == BatchDone || in.Kind == InstanceChanged) && e.fleet.Instance(in.Instance) == nil
}

// Check walks the whole state and reports the first broken invariant, or the first rule that the driver or a policy has
// broken since the start. Tests call it after every Step.
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
