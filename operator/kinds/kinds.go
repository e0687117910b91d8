// Package kinds has the kinds of objects that the operator's programs read and write. They are known here rather than
// asked for: a client that asks the API server which kinds there are does so under a lock, and while the server is
// silent every other call of the client waits for it, whatever its own time.
package kinds

import (
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
)

// inNamespaces are the kinds by their versions; nodes are in none.
var inNamespaces = map[schema.GroupVersion][]string{
	corev1.SchemeGroupVersion:         {"Pod", "ConfigMap", "Secret", "Service", "ServiceAccount", "Event"},
	appsv1.SchemeGroupVersion:         {"Deployment"},
	batchv1.SchemeGroupVersion:        {"Job"},
	coordinationv1.SchemeGroupVersion: {"Lease"},
	policyv1.SchemeGroupVersion:       {"PodDisruptionBudget"},
	rbacv1.SchemeGroupVersion:         {"RoleBinding"},
	v1alpha1.GroupVersion:             {"Fleet", "InferenceApp", "MachineType", "Profile"},
}

// Scheme has the Go types of the kinds.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, errors.Join(clientgoscheme.AddToScheme(s), v1alpha1.AddToScheme(s))
}

// Mapper has the paths of the kinds on the API server.
func Mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	add := func(kind schema.GroupVersionKind, scope meta.RESTScope) {
		m.Add(kind, scope)
		kind.Kind += "List"
		m.Add(kind, scope)
	}
	add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	for gv, kinds := range inNamespaces {
		for _, kind := range kinds {
			add(gv.WithKind(kind), meta.RESTScopeNamespace)
		}
	}
	return m
}
