package controller

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlutil "sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// The roles of pods, values of v1alpha1.LabelRole.
const (
	RoleDispatcher = "dispatcher"
	RoleWorker     = "worker"
	RoleMeasure    = "measure"
)

// The ports of dispatchers.
const (
	portHTTP  = 8000
	portGRPC  = 8001
	portAdmin = 8002
)

// user is the one that the image's processes run as.
const user = 65532

// storeFolder is where dispatchers keep what they have learned, with a store.
const storeFolder = "/var/lib/sluice"

// endSeconds is how long a dispatcher may take to end: it says that it is not ready, and answers what it has accepted.
const endSeconds = 60

// dispatcherRole is the ClusterRole that dispatchers have in the namespace of their fleet. What installs the operator
// makes it, so that the operator can give away no other right.
const dispatcherRole = "sluice-dispatcher"

// dispatchers makes what serves a fleet's cells.
func (r *fleets) dispatchers(ctx context.Context, f *fleet, _ *decision) error {
	type object struct{ want, empty client.Object }
	name := f.Name + "-dispatcher"
	meta := func(name, role string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: f.Namespace, Labels: labelsOf(f, role)}
	}
	mine := labelsOf(f, RoleDispatcher)
	delete(mine, "app.kubernetes.io/managed-by") // selectors cannot be changed later
	list := []object{
		{&corev1.ServiceAccount{ObjectMeta: meta(name, RoleDispatcher)}, &corev1.ServiceAccount{}},
		// Workers ask the API server for nothing.
		{&corev1.ServiceAccount{ObjectMeta: meta(f.Name+"-worker", RoleWorker),
			AutomountServiceAccountToken: ptr.To(false)}, &corev1.ServiceAccount{}},
		{&rbacv1.RoleBinding{ObjectMeta: meta(name, RoleDispatcher),
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: f.Namespace}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: dispatcherRole}},
			&rbacv1.RoleBinding{}},
		{&corev1.Service{ObjectMeta: meta(f.Name, RoleDispatcher), Spec: corev1.ServiceSpec{
			Selector: mine, Type: corev1.ServiceTypeClusterIP,
			Ports: servicePorts(f.Spec.TLS != nil),
		}}, &corev1.Service{}},
		{&appsv1.Deployment{ObjectMeta: meta(name, RoleDispatcher), Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(max(f.Spec.Dispatchers, 1)), Selector: &metav1.LabelSelector{MatchLabels: mine},
			// A new dispatcher is ready before an old one goes.
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{
					MaxUnavailable: ptr.To(intstr.FromInt32(0)), MaxSurge: ptr.To(intstr.FromInt32(1))}},
			Template: r.dispatcherPod(f, name),
		}}, &appsv1.Deployment{}},
		{&policyv1.PodDisruptionBudget{ObjectMeta: meta(name, RoleDispatcher), Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: mine},
		}}, &policyv1.PodDisruptionBudget{}},
	}
	var errs []error
	for _, o := range list {
		err := ctrlutil.SetControllerReference(f.Fleet, o.want, r.Scheme())
		if err == nil {
			_, err = r.apply(ctx, o.want, o.empty)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// dispatcherPod is a dispatcher, as small in rights as the standard for restricted pods asks.
func (r *fleets) dispatcherPod(f *fleet, account string) corev1.PodTemplateSpec {
	env := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
	}
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: path, Port: intstr.FromString("admin"), Scheme: corev1.URISchemeHTTP,
		}}, PeriodSeconds: 2, TimeoutSeconds: 2, FailureThreshold: 3, SuccessThreshold: 1}
	}
	port := func(name string, n int32) corev1.ContainerPort {
		return corev1.ContainerPort{Name: name, ContainerPort: n, Protocol: corev1.ProtocolTCP}
	}
	c := corev1.Container{
		Name: RoleDispatcher, Image: r.image(f), ImagePullPolicy: r.o.PullPolicy,
		Command: []string{"/usr/local/bin/sluice-operator"}, Args: []string{"dispatcher", "--fleet=" + f.Name},
		Env: []corev1.EnvVar{
			env("POD_NAME", "metadata.name"), env("POD_NAMESPACE", "metadata.namespace"),
			env("POD_UID", "metadata.uid"), env("POD_IP", "status.podIP"),
		},
		Ports: []corev1.ContainerPort{port("http", portHTTP), port("grpc", portGRPC),
			port("admin", portAdmin)},
		ReadinessProbe: probe("/readyz"), LivenessProbe: probe("/livez"),
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("256Mi"),
		}},
		SecurityContext: restricted(),
		VolumeMounts:    []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
	}
	c.LivenessProbe.PeriodSeconds, c.LivenessProbe.FailureThreshold = 10, 6
	volumes := []corev1.Volume{{Name: "tmp",
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	c.Args = append(c.Args, tlsArgs(f.Spec.TLS)...)
	for _, x := range callerFiles(&f.Spec) {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: x.Name, MountPath: x.folder, ReadOnly: true})
		volumes = append(volumes, x.Volume)
	}
	if f.Spec.Store != "" {
		c.Env = append(c.Env, corev1.EnvVar{Name: "SLUICE_STORE", Value: storeFolder})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "store", MountPath: storeFolder})
		volumes = append(volumes, corev1.Volume{Name: "store", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: f.Spec.Store}}})
	}
	mine := labelsOf(f, RoleDispatcher)
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: mine},
		Spec: corev1.PodSpec{
			ServiceAccountName: account, TerminationGracePeriodSeconds: ptr.To[int64](endSeconds),
			SecurityContext: podSecurity(), Containers: []corev1.Container{c}, Volumes: volumes,
			ImagePullSecrets: r.o.PullSecrets,
			Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
					Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{
						TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: mine}},
				}},
			}},
		},
	}
}

// image is that of a fleet's dispatchers.
func (r *fleets) image(f *fleet) string {
	if f.Spec.Image != "" {
		return f.Spec.Image
	}
	return r.o.Image
}

func restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

func podSecurity() *corev1.PodSecurityContext {
	return &corev1.PodSecurityContext{
		RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](user), RunAsGroup: ptr.To[int64](user),
		FSGroup:        ptr.To[int64](user),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}
