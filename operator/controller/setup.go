package controller

import (
	"context"
	"errors"
	"net/http"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/kinds"
)

// Options configure the operator.
type Options struct {
	// Namespaces to look after; none for all.
	Namespaces []string
	// Image of dispatchers, workers and measurements of fleets that name none. Required.
	Image string
	// PullPolicy and PullSecrets hold for that image.
	PullPolicy  corev1.PullPolicy
	PullSecrets []corev1.LocalObjectReference
	// Metrics and Health are addresses to listen on; "0" for none.
	Metrics, Health string
	// Profiling is an address that answers /debug/pprof/; empty for none.
	Profiling string
	// Elect has one of several operators work, by a lease in ElectIn.
	Elect   bool
	ElectIn string
	// Redeal is how often apps and machines are divided anew by the load that was seen. Default: 30 s.
	Redeal time.Duration
	// MeasureTimeout bounds how long a measurement may take, with the time until its pod has a node. Default: 1 h.
	MeasureTimeout time.Duration
}

func (o *Options) defaults() error {
	if o.Image == "" {
		return errors.New("--image is missing: which image do dispatchers and workers have?")
	}
	if o.Redeal <= 0 {
		o.Redeal = 30 * time.Second
	}
	if o.MeasureTimeout <= 0 {
		o.MeasureTimeout = time.Hour
	}
	return nil
}

// Manager is the name under which the operator owns fields of resources.
const Manager = "sluice-operator"

// New makes the operator. Its Start works until its context ends.
func New(api *rest.Config, o Options) (ctrl.Manager, error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	scheme, err := kinds.Scheme()
	if err != nil {
		return nil, err
	}
	of, err := labels.NewRequirement(v1alpha1.LabelFleet, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	ours := cache.ByObject{Label: labels.NewSelector().Add(*of)}
	namespaces := map[string]cache.Config{}
	for _, n := range o.Namespaces {
		namespaces[n] = cache.Config{}
	}
	skip := true // tests run several operators in one process
	// There is little to put before anything else, and the queue with priorities waits while it holds a lock: a virtual
	// clock (internal/storm) takes that for work, and stands still.
	priorities := false
	m, err := ctrl.NewManager(api, ctrl.Options{
		Scheme: scheme,
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			return kinds.Mapper(), nil
		},
		Metrics: server.Options{BindAddress: o.Metrics}, HealthProbeBindAddress: o.Health,
		PprofBindAddress: o.Profiling,
		LeaderElection:   o.Elect, LeaderElectionID: Manager, LeaderElectionNamespace: o.ElectIn,
		LeaderElectionReleaseOnCancel: true,
		Controller:                    config.Controller{SkipNameValidation: &skip, UsePriorityQueue: &priorities},
		Cache: cache.Options{
			DefaultNamespaces: namespaces,
			DefaultTransform:  cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&corev1.ConfigMap{}: ours, &corev1.Pod{}: ours, &corev1.Service{}: ours, &corev1.ServiceAccount{}: ours,
				&appsv1.Deployment{}: ours, &batchv1.Job{}: ours, &policyv1.PodDisruptionBudget{}: ours,
				&rbacv1.RoleBinding{}: ours,
			},
		},
	})
	if err != nil {
		return nil, err
	}
	if err := m.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	if err := m.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return m, errors.Join(addFleets(m, o), addMachineTypes(m))
}

// fieldFleet indexes resources by the fleet that they name.
const fieldFleet = "spec.fleet"

// ofFleet selects the resources of a fleet from the cache.
func ofFleet(namespace, name string) *client.ListOptions {
	return &client.ListOptions{Namespace: namespace, FieldSelector: fields.OneTermEqualSelector(fieldFleet, name)}
}

// indexes has the cache find resources by their fleet.
func indexes(ctx context.Context, m ctrl.Manager) error {
	var errs []error
	for _, kind := range []client.Object{&v1alpha1.InferenceApp{}, &v1alpha1.MachineType{}, &v1alpha1.Profile{}} {
		errs = append(errs, m.GetFieldIndexer().IndexField(ctx, kind, fieldFleet, func(o client.Object) []string {
			return []string{fleetOf(o)}
		}))
	}
	return errors.Join(errs...)
}

// fleetOf is the name of the fleet that a resource belongs to; empty for none.
func fleetOf(o client.Object) string {
	switch x := o.(type) {
	case *v1alpha1.Fleet:
		return x.Name
	case *v1alpha1.InferenceApp:
		return x.Spec.Fleet
	case *v1alpha1.MachineType:
		return x.Spec.Fleet
	case *v1alpha1.Profile:
		return x.Spec.Fleet
	}
	return o.GetLabels()[v1alpha1.LabelFleet]
}
