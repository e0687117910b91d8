package engine

import (
	"github.com/sluice-serving/sluice/serving"
)

// decisions collects the answer of a step.
type decisions struct {
	list  []Decision
	tasks []Task      // of all batches that start
	times []StageTime // of all queries of several stages that are served
}

// reset forgets the answer of the step before.
func (d *decisions) reset() { d.list, d.tasks, d.times = d.list[:0], d.tasks[:0], d.times[:0] }

// add appends a decision of a kind and returns it, to be filled in before the next one is added.
func (d *decisions) add(k DecisionKind, why Reason) *Decision {
	n := len(d.list)
	if n == cap(d.list) {
		d.list = append(d.list, Decision{})
	} else {
		d.list = d.list[:n+1] // in place: a decision is large
		d.list[n] = Decision{}
	}
	x := &d.list[n]
	x.Kind, x.Reason = k, why
	return x
}

// ofInstance appends a decision about an instance and no variant of it.
func (d *decisions) ofInstance(k DecisionKind, why Reason, i serving.InstanceID) *Decision {
	x := d.add(k, why)
	x.Instance, x.Variant = i, serving.None
	return x
}

// ofVariant appends a decision about a variant of an instance.
func (d *decisions) ofVariant(k DecisionKind, why Reason, i serving.InstanceID, v serving.VariantID) *Decision {
	x := d.add(k, why)
	x.Instance, x.Variant = i, v
	return x
}

// ofQuery appends the end of a query.
func (d *decisions) ofQuery(o serving.Outcome, why Reason, q *serving.Query) *Decision {
	x := d.add(EndQuery, why)
	x.Outcome, x.Query, x.App, x.Brought = o, q.ID, q.App, q.Items
	x.Arrived, x.Deadline, x.Tenant = q.Arrived, q.Deadline, q.Tenant
	x.Variant, x.Stage = serving.None, serving.None
	return x
}
