package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
)

// fleets reconciles fleets with all that belongs to them.
type fleets struct {
	*applier
	o      Options
	events events.EventRecorder
	made   memory
	damp   damper
	told   sync.Map // by UID: jobs whose result cannot be read, said once
}

func addFleets(m ctrl.Manager, o Options) error {
	if err := indexes(context.Background(), m); err != nil {
		return err
	}
	r := &fleets{applier: newApplier(m.GetClient()), o: o, events: m.GetEventRecorder(Manager)}
	toFleet := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, x client.Object) []reconcile.Request {
		if name := fleetOf(x); name != "" {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: x.GetNamespace(), Name: name}}}
		}
		return nil
	})
	spec := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	// Dispatchers write rates to apps every few seconds: those are looked at when cells are divided anew, not here.
	return ctrl.NewControllerManagedBy(m).Named("fleet").
		For(&v1alpha1.Fleet{}).
		Watches(&v1alpha1.InferenceApp{}, toFleet, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, acceptanceChanged()))).
		Watches(&v1alpha1.MachineType{}, toFleet, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, availabilityChanged()))).
		Watches(&v1alpha1.Profile{}, toFleet, spec).
		Watches(&batchv1.Job{}, toFleet).
		Owns(&corev1.ConfigMap{}).
		Owns(&appsv1.Deployment{}, spec).
		Owns(&policyv1.PodDisruptionBudget{}, spec).
		Owns(&corev1.Service{}).
		Owns(&corev1.ServiceAccount{}).
		Owns(&rbacv1.RoleBinding{}).
		Complete(r)
}

// acceptanceChanged passes updates of apps that changed what the operator itself writes, so that it is mended.
func acceptanceChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return true },
		DeleteFunc: func(event.DeleteEvent) bool { return true },
		UpdateFunc: func(e event.UpdateEvent) bool {
			a, ok := e.ObjectOld.(*v1alpha1.InferenceApp)
			b, also := e.ObjectNew.(*v1alpha1.InferenceApp)
			return ok && also && sameCondition(a.Status.Conditions, b.Status.Conditions, Accepted) != nil
		},
	}
}

// availabilityChanged passes updates of machine types that became available or ceased to be.
func availabilityChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			a, ok := e.ObjectOld.(*v1alpha1.MachineType)
			b, also := e.ObjectNew.(*v1alpha1.MachineType)
			return ok && also && (sameCondition(a.Status.Conditions, b.Status.Conditions, Available) != nil ||
				sameCondition(a.Status.Conditions, b.Status.Conditions, Accepted) != nil)
		},
	}
}

// fleet is a fleet with its resources, as the cache shows them.
type fleet struct {
	*v1alpha1.Fleet
	apps     []*v1alpha1.InferenceApp
	types    []*v1alpha1.MachineType
	profiles []*v1alpha1.Profile
	configs  map[int32]*corev1.ConfigMap // by cell
}

// Reconcile implements reconcile.Reconciler.
func (r *fleets) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	f := &fleet{Fleet: &v1alpha1.Fleet{}}
	if err := r.Get(ctx, req.NamespacedName, f.Fleet); err != nil {
		if !apierrors.IsNotFound(err) {
			return reconcile.Result{}, err
		}
		r.made.forget(req.NamespacedName)
		r.damp.forget(req.NamespacedName)
		return reconcile.Result{}, r.orphans(ctx, req.NamespacedName)
	}
	if !f.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil // what it owns is collected with it
	}
	if err := r.gather(ctx, f); err != nil {
		return reconcile.Result{}, err
	}
	d, err := r.decide(f)
	if err != nil {
		// The fleet itself cannot be used. What runs goes on as it was.
		log.FromContext(ctx).Info("the fleet is not accepted", "why", err.Error())
		return reconcile.Result{}, r.fleetStatus(ctx, f, nil, err)
	}
	again := r.o.Redeal
	errs := []error{r.dispatchers(ctx, f, d)}
	if wait := r.damp.wait(req.NamespacedName, time.Now()); wait > 0 {
		again = min(again, wait)
	} else {
		wrote, err := r.writeCells(ctx, f, d)
		if errs = append(errs, err); wrote {
			r.damp.wrote(req.NamespacedName, time.Now())
		}
	}
	errs = append(errs, r.appStatuses(ctx, f, d), r.typeStatuses(ctx, f, d), r.measure(ctx, f, d),
		r.fleetStatus(ctx, f, d, nil))
	return reconcile.Result{RequeueAfter: again}, errors.Join(errs...)
}

// gather reads what belongs to a fleet.
func (r *fleets) gather(ctx context.Context, f *fleet) error {
	var apps v1alpha1.InferenceAppList
	var kinds v1alpha1.MachineTypeList
	var profiles v1alpha1.ProfileList
	var configs corev1.ConfigMapList
	of := ofFleet(f.Namespace, f.Name)
	err := errors.Join(r.List(ctx, &apps, of), r.List(ctx, &kinds, of), r.List(ctx, &profiles, of),
		r.List(ctx, &configs, client.InNamespace(f.Namespace), client.MatchingLabels{v1alpha1.LabelFleet: f.Name}))
	if err != nil {
		return err
	}
	for i := range apps.Items {
		if apps.Items[i].DeletionTimestamp.IsZero() {
			f.apps = append(f.apps, &apps.Items[i])
		}
	}
	for i := range kinds.Items {
		if kinds.Items[i].DeletionTimestamp.IsZero() {
			f.types = append(f.types, &kinds.Items[i])
		}
	}
	for i := range profiles.Items {
		f.profiles = append(f.profiles, &profiles.Items[i])
	}
	f.configs = map[int32]*corev1.ConfigMap{}
	for i := range configs.Items {
		if n, ok := cellOf(f.Name, &configs.Items[i]); ok {
			f.configs[n] = &configs.Items[i]
		}
	}
	return nil
}

// orphans tells the apps and machine types of a fleet that is not there.
func (r *fleets) orphans(ctx context.Context, key types.NamespacedName) error {
	f := &fleet{Fleet: &v1alpha1.Fleet{}}
	f.Namespace, f.Name = key.Namespace, key.Name
	if err := r.gather(ctx, f); err != nil {
		return err
	}
	why := fmt.Sprintf("there is no fleet %q in namespace %q: create one, or name another in spec.fleet", key.Name,
		key.Namespace)
	var errs []error
	for _, a := range f.apps {
		errs = append(errs, r.appStatus(ctx, f, a, nil, "NoFleet", why))
	}
	for _, t := range f.types {
		errs = append(errs, r.typeAccepted(ctx, t, "NoFleet", why))
	}
	return errors.Join(errs...)
}

// labelsOf are those of everything that belongs to a fleet.
func labelsOf(f *fleet, role string) map[string]string {
	out := map[string]string{v1alpha1.LabelFleet: f.Name, "app.kubernetes.io/managed-by": Manager}
	if role != "" {
		out[v1alpha1.LabelRole] = role
	}
	return out
}

// plural writes a number of things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if strings.HasSuffix(thing, "y") {
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(thing, "y"))
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
