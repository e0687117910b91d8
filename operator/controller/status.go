package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/cell"
)

// sameCondition returns the condition of a type in b where it differs from that in a; nil where both are the same.
func sameCondition(a, b []metav1.Condition, kind string) *metav1.Condition {
	x, y := meta.FindStatusCondition(a, kind), meta.FindStatusCondition(b, kind)
	switch {
	case x == nil && y == nil:
		return nil
	case y == nil:
		return x
	case x != nil && x.Status == y.Status && x.Reason == y.Reason && x.Message == y.Message:
		return nil
	}
	return y
}

// appStatuses says of every app whether it is accepted, and who serves it.
func (r *fleets) appStatuses(ctx context.Context, f *fleet, d *decision) error {
	cells := map[string]int32{}
	refused := maps.Clone(d.refusedApps)
	for at, made := range d.cells {
		for _, name := range made.Apps {
			cells[name] = int32(at)
		}
		maps.Copy(refused, made.RefusedApps)
	}
	var errs []error
	for _, a := range f.apps {
		at, dealt := cells[a.Name]
		switch why := refused[a.Name]; {
		case why != "":
			errs = append(errs, r.appStatus(ctx, f, a, nil, "Invalid", why))
		case !dealt:
			errs = append(errs, r.appStatus(ctx, f, a, nil, "NoMachines",
				fmt.Sprintf("fleet %q has no machine that can be used: create a MachineType with most of at least 1",
					f.Name)))
		default:
			errs = append(errs, r.appStatus(ctx, f, a, &at, "Accepted", "the app is part of its fleet's plans"))
		}
	}
	return errors.Join(errs...)
}

// appStatus writes the operator's part of an app's status where it differs: condition Accepted, cell, endpoint,
// selector.
func (r *fleets) appStatus(ctx context.Context, f *fleet, a *v1alpha1.InferenceApp, at *int32, reason,
	message string) error {
	conditions, differs := merged(a.Status.Conditions,
		[]metav1.Condition{condition(Accepted, at != nil, reason, message)}, a.Generation)
	status := map[string]any{"conditions": conditions}
	if at != nil {
		scheme := "http"
		if f.Spec.TLS != nil {
			scheme = "https"
		}
		endpoint := fmt.Sprintf("%s://%s.%s:%d/v2/models/%s", scheme, f.Name, f.Namespace, portHTTP, a.Name)
		selector := fmt.Sprintf("%s=%s,%s=%s", v1alpha1.LabelFleet, f.Name, v1alpha1.LabelRole, RoleWorker)
		status["cell"], status["endpoint"], status["selector"] = int64(*at), endpoint, selector
		differs = differs || a.Status.Cell == nil || *a.Status.Cell != *at || a.Status.Endpoint != endpoint ||
			a.Status.Selector != selector
	} else {
		differs = differs || a.Status.Cell != nil
	}
	if !differs {
		return nil
	}
	if before := a.Status.Cell; before != nil && at != nil && *before != *at {
		r.events.Eventf(a, nil, corev1.EventTypeNormal, "Moved", "Deal",
			"cell %d serves the app now, cell %d did before", *at, *before)
	}
	if x := meta.FindStatusCondition(a.Status.Conditions, Accepted); x == nil || x.Reason != reason {
		kind := corev1.EventTypeNormal
		if at == nil {
			kind = corev1.EventTypeWarning
		}
		r.events.Eventf(a, nil, kind, reason, "Accept", "%s", message)
	}
	return r.applyStatus(ctx, a, status)
}

// typeStatuses says of every machine type whether it is accepted.
func (r *fleets) typeStatuses(ctx context.Context, f *fleet, d *decision) error {
	refused := maps.Clone(d.refusedTypes)
	for _, made := range d.cells {
		maps.Copy(refused, made.RefusedTypes)
	}
	var errs []error
	for _, t := range f.types {
		if why := refused[t.Name]; why != "" {
			errs = append(errs, r.typeAccepted(ctx, t, "Invalid", why))
		} else {
			errs = append(errs, r.typeAccepted(ctx, t, "Accepted",
				"machines of the type are part of the fleet's plans"))
		}
	}
	return errors.Join(errs...)
}

// typeManager owns the condition Accepted of machine types; Manager owns the rest of their status.
const typeManager = Manager + "-fleet"

// typeAccepted writes the condition Accepted of a machine type where it differs.
func (r *fleets) typeAccepted(ctx context.Context, t *v1alpha1.MachineType, reason, message string) error {
	conditions, differs := merged(t.Status.Conditions,
		[]metav1.Condition{condition(Accepted, reason == "Accepted", reason, message)}, t.Generation)
	if !differs {
		return nil
	}
	x := meta.FindStatusCondition(t.Status.Conditions, Accepted)
	if reason != "Accepted" && (x == nil || x.Message != message) {
		r.events.Eventf(t, nil, corev1.EventTypeWarning, reason, "Accept", "%s", message)
	}
	return r.applyStatusAs(ctx, typeManager, t, map[string]any{"conditions": conditions})
}

// fleetStatus writes the operator's part of a fleet's status where it differs. invalid says why the fleet itself cannot
// be used.
func (r *fleets) fleetStatus(ctx context.Context, f *fleet, d *decision, invalid error) error {
	have := &f.Status
	if err := r.forgetCells(ctx, f, d); err != nil {
		return err
	}
	machines, cost := int32(0), 0.0
	prices := map[string]float64{}
	for _, t := range f.types {
		if t.Spec.PricePerHour != nil {
			prices[t.Name] = t.Spec.PricePerHour.AsApproximateFloat64()
		}
	}
	for _, c := range have.Cells {
		for t, n := range c.Machines {
			machines += n
			cost += float64(n) * prices[t]
		}
	}
	var want []metav1.Condition
	if invalid != nil {
		want = append(want, condition(Accepted, false, "Invalid", invalid.Error()))
		if x := meta.FindStatusCondition(have.Conditions, Accepted); x == nil || x.Message != invalid.Error() {
			r.events.Eventf(f.Fleet, nil, corev1.EventTypeWarning, "Invalid", "Accept", "%s", invalid.Error())
		}
	} else {
		want = append(want, condition(Accepted, true, "Accepted",
			"the fleet's resources are a configuration that can be served"))
	}
	if d != nil {
		want = append(want, readiness(have, d))
	} else if x := meta.FindStatusCondition(have.Conditions, Ready); x != nil {
		want = append(want, *x) // what runs goes on
	}
	want = append(want, budgeted(f, cost), available(f))
	conditions, differs := merged(have.Conditions, want, f.Generation)
	costs := strconv.FormatFloat(cost, 'f', 2, 64)
	endpoint := f.Name + "." + f.Namespace
	apps := int64(len(f.apps))
	if !differs && have.ObservedGeneration == f.Generation && int64(have.Apps) == apps && have.Machines == machines &&
		have.CostPerHour == costs && have.Endpoint == endpoint {
		return nil
	}
	return r.applyStatus(ctx, f.Fleet, map[string]any{
		"observedGeneration": f.Generation, "conditions": conditions, "apps": apps, "machines": int64(machines),
		"costPerHour": costs, "endpoint": endpoint,
	})
}

// forgetCells removes what dispatchers said of cells that the fleet does not have any more: nobody else does.
func (r *fleets) forgetCells(ctx context.Context, f *fleet, d *decision) error {
	if d == nil {
		return nil
	}
	var kept []v1alpha1.CellStatus
	for _, c := range f.Status.Cells {
		if int(c.Cell) < len(d.parts) {
			kept = append(kept, c)
			continue
		}
		if err := r.applyStatusAs(ctx, cell.Manager(int(c.Cell)), f.Fleet, map[string]any{}); err != nil {
			return err
		}
	}
	f.Status.Cells = kept
	return nil
}

// readiness says whether all cells are served.
func readiness(have *v1alpha1.FleetStatus, d *decision) metav1.Condition {
	if len(d.parts) == 0 {
		return condition(Ready, false, "NothingToServe", "the fleet has no app, or no machine type: create an "+
			"InferenceApp and a MachineType that name it in spec.fleet")
	}
	holders := map[int32]string{}
	for _, c := range have.Cells {
		holders[c.Cell] = c.Holder
	}
	var waiting []string
	for at := range d.parts {
		if holders[int32(at)] == "" && len(d.cells[at].Apps) > 0 {
			waiting = append(waiting, strconv.Itoa(at))
		}
	}
	if len(waiting) > 0 {
		return condition(Ready, false, "NotServed", "no dispatcher serves cell "+strings.Join(waiting, ", ")+" yet")
	}
	return condition(Ready, true, "Served", plural(len(d.parts), "cell")+" are served")
}

func budgeted(f *fleet, cost float64) metav1.Condition {
	if f.Spec.Budget == nil {
		return condition(WithinBudget, true, "NoBudget", "the fleet has no budget")
	}
	most := f.Spec.Budget.AsApproximateFloat64()
	// The cost is not in the message: it would change with every machine, and is a field of the status.
	if cost > most*(1+1e-9) {
		return condition(WithinBudget, false, "OverBudget", fmt.Sprintf("machines cost more than %.4g $/h: while work "+
			"moves machines of both plans are paid for; owned machines count, too", most))
	}
	return condition(WithinBudget, true, "WithinBudget", fmt.Sprintf("machines cost at most %.4g $/h", most))
}

func available(f *fleet) metav1.Condition {
	var why []string
	for _, t := range f.types {
		if x := meta.FindStatusCondition(t.Status.Conditions, Available); x != nil &&
			x.Status == metav1.ConditionFalse {
			why = append(why, t.Name+": "+x.Message)
		}
	}
	if len(why) > 0 {
		return condition(MachinesAvailable, false, "Pending", strings.Join(why, "; "))
	}
	return condition(MachinesAvailable, true, "Available", "no machine stays pending")
}
