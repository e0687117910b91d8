package supply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"

	"github.com/sluice-serving/sluice/internal/provider"
	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/cell"
)

// Ports and folders of worker pods.
const (
	PortGRPC = 8001
	PortHTTP = 8000

	modelsFolder = "/models"  // what was fetched
	cellFolder   = "/cell"    // machines.json
	claimsFolder = "/claims"  // CLAIM: persistent volumes that models are on
	secretFolder = "/secrets" // NAME/KEY: what downloads need
	tempFolder   = "/tmp"
)

// Programs of sluice's image.
const (
	sluiceProgram   = "/usr/local/bin/sluice"
	operatorProgram = "/usr/local/bin/sluice-operator"
)

const fetcherName = "fetch"

// AnnotationTemplate has the fingerprint of the template that a pod was made of: one with another is replaced.
const AnnotationTemplate = "sluice.dev/template"

// Seconds. A pod that others delete serves on for moving, so that its work can go elsewhere, and then has ending for
// what still runs.
const (
	moving       = 30
	ending       = 30
	user         = 65532
	releaseGrace = 10 // of a pod that is given back: nothing runs there
)

// podName is the name of the pod of a machine: FLEET-cN-TYPE-I.
func podName(m *cell.Machines, worker string) string {
	return fmt.Sprintf("%s-c%d-%s", m.Fleet, m.Cell, worker)
}

// typed fails for a type that the cell does not have.
func typed(m *cell.Machines, name string) (v1alpha1.MachineTypeSpec, error) {
	t, ok := m.Types[name]
	if !ok {
		return t, fmt.Errorf("the cell has no machine type %q", name)
	}
	return t, nil
}

// newPod returns the pod of a machine. Everything that pod security's level `restricted` asks for is set.
func newPod(m *cell.Machines, namespace string, w provider.Worker) (*corev1.Pod, error) {
	worker, machineType := w.Name, w.DeviceType
	t, err := typed(m, machineType)
	if err != nil {
		return nil, err
	}
	p, err := template(m, machineType, &t)
	if err != nil {
		return nil, err
	}
	print, err := fingerprint(p)
	if err != nil {
		return nil, err
	}
	p.Namespace, p.Name = namespace, podName(m, worker)
	p.Labels[v1alpha1.LabelMachine] = worker
	p.Annotations[AnnotationTemplate] = print
	for k := range p.Spec.InitContainers { // what the first instance needs; the rest is fetched when it is loaded
		if c := &p.Spec.InitContainers[k]; c.Name == fetcherName && t.Backend != v1alpha1.BackendTriton {
			c.Command = append(c.Command, w.Models...)
		}
	}
	if m.UID != "" {
		p.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ConfigMap", Name: cell.Name(m.Fleet, m.Cell), UID: m.UID,
			Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(false),
		}}
	}
	return p, nil
}

// wantedPrint is the fingerprint that the pods of a type are to have; "" where there is no such type.
func wantedPrint(m *cell.Machines, machineType string) string {
	t, err := typed(m, machineType)
	if err != nil {
		return ""
	}
	p, err := template(m, machineType, &t)
	if err != nil {
		return ""
	}
	print, err := fingerprint(p)
	if err != nil {
		return ""
	}
	return print
}

func fingerprint(p *corev1.Pod) (string, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:16], nil
}

// template is what the pods of a type have in common.
func template(m *cell.Machines, machineType string, t *v1alpha1.MachineTypeSpec) (*corev1.Pod, error) {
	own := map[string]string{
		v1alpha1.LabelFleet: m.Fleet, v1alpha1.LabelRole: RoleWorker, v1alpha1.LabelMachineType: machineType,
		v1alpha1.LabelCell: fmt.Sprint(m.Cell),
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(own), Annotations: map[string]string{}},
		Spec: corev1.PodSpec{
			// A machine that has ended is lost with what it had loaded: another is made, perhaps elsewhere.
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: ptr.To[int64](moving + ending),
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			ImagePullSecrets:              m.PullSecrets,
			NodeSelector:                  t.NodeSelector,
			Affinity:                      t.Affinity,
			Tolerations:                   t.Tolerations,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](user), RunAsGroup: ptr.To[int64](user),
				FSGroup:        ptr.To[int64](user),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
		},
	}
	mounts := volumes(m, &p.Spec)
	worker := corev1.Container{
		Name: "worker", Image: image(m, t), ImagePullPolicy: m.PullPolicy, Resources: resources(t),
		Ports: []corev1.ContainerPort{
			{Name: "grpc", ContainerPort: PortGRPC}, {Name: "http", ContainerPort: PortHTTP},
		},
		SecurityContext: restricted(), VolumeMounts: mounts,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		Lifecycle: &corev1.Lifecycle{
			PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: moving}},
		},
	}
	switch t.Backend {
	case v1alpha1.BackendTriton:
		worker.Args = []string{
			"tritonserver", "--model-repository=" + modelsFolder, "--model-control-mode=explicit",
			fmt.Sprintf("--grpc-port=%d", PortGRPC), fmt.Sprintf("--http-port=%d", PortHTTP), "--allow-metrics=true",
		}
		worker.ReadinessProbe = probe(corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: "/v2/health/ready", Port: intstr.FromInt32(PortHTTP),
		}})
		// It fetches nothing by itself: all models of the cell have to be there.
		p.Spec.InitContainers = []corev1.Container{fetcher(m, mounts, slices.Sorted(maps.Keys(m.Models)))}
	case v1alpha1.BackendFake:
		worker.Command = []string{sluiceProgram}
		worker.Args = []string{
			"node", "--grpc", fmt.Sprintf(":%d", PortGRPC), "--http", fmt.Sprintf(":%d", PortHTTP), "--fake", "5ms",
			"--fake-item", "1ms",
		}
		worker.ReadinessProbe = probe(corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: PortGRPC}})
	default:
		worker.Command = []string{sluiceProgram}
		worker.Args = []string{
			"node", "--grpc", fmt.Sprintf(":%d", PortGRPC), "--http", fmt.Sprintf(":%d", PortHTTP),
			"--drain", fmt.Sprintf("%ds", ending-5), "--cores", fmt.Sprint(max(t.Cores, 1)),
			"--fetch", strings.Join(fetchCommand(), " "),
		}
		if len(t.Accelerators) > 0 {
			worker.Args = append(worker.Args, "--provider", "cuda", "--provider", "cpu")
		}
		worker.Args = append(worker.Args, modelsFolder)
		worker.ReadinessProbe = probe(corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: PortGRPC}})
		// The image has the programs; what the first instance needs is fetched while the pod starts.
		p.Spec.InitContainers = []corev1.Container{fetcher(m, mounts, nil)}
	}
	p.Spec.Containers = []corev1.Container{worker}
	if t.PodTemplate != nil {
		if err := overlay(p, t.PodTemplate); err != nil {
			return nil, fmt.Errorf("machine type %q: podTemplate: %w", machineType, err)
		}
	}
	if p.Labels == nil {
		p.Labels = make(map[string]string)
	}
	maps.Copy(p.Labels, own) // by which pods are found
	if p.Annotations == nil {
		p.Annotations = make(map[string]string)
	}
	return p, nil
}

func image(m *cell.Machines, t *v1alpha1.MachineTypeSpec) string {
	if t.Image != "" {
		return t.Image
	}
	return m.Image
}

// fetchCommand fetches models that machines.json names, with what the pod has mounted.
func fetchCommand() []string {
	return []string{
		operatorProgram, "fetch", "--machines", cellFolder + "/" + cell.KeyMachines, "--claims", claimsFolder,
		"--secrets", secretFolder,
	}
}

// fetcher fetches models before the worker starts. It never fails for good: a model that cannot be had is a failure of
// its load, and not of the machine. Its termination message says which.
func fetcher(m *cell.Machines, mounts []corev1.VolumeMount, models []string) corev1.Container {
	command := append(fetchCommand(), "--best-effort", "--termination-log", corev1.TerminationMessagePathDefault,
		"--to", modelsFolder)
	return corev1.Container{
		Name: fetcherName, Image: m.Image, ImagePullPolicy: m.PullPolicy, Command: append(command, models...),
		SecurityContext: restricted(), VolumeMounts: mounts,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"),
				corev1.ResourceMemory: resource.MustParse("128Mi")},
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
		},
	}
}

func probe(h corev1.ProbeHandler) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: h, PeriodSeconds: 2, TimeoutSeconds: 2, FailureThreshold: 3}
}

func restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true), RunAsNonRoot: ptr.To(true),
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// resources are what a machine's pod asks for: its cores, its memory, its accelerators.
func resources(t *v1alpha1.MachineTypeSpec) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	r.Requests[corev1.ResourceCPU] = *resource.NewQuantity(int64(max(t.Cores, 1)), resource.DecimalSI)
	if t.Memory != nil && len(t.Accelerators) == 0 {
		r.Requests[corev1.ResourceMemory] = *t.Memory
		r.Limits[corev1.ResourceMemory] = *t.Memory
	}
	for name, n := range t.Accelerators {
		q := *resource.NewQuantity(int64(n), resource.DecimalSI)
		r.Requests[name], r.Limits[name] = q, q
	}
	return r
}

// volumes adds the volumes that models come from and go to, and returns where they are mounted.
func volumes(m *cell.Machines, spec *corev1.PodSpec) []corev1.VolumeMount {
	mounts := []corev1.VolumeMount{
		{Name: "models", MountPath: modelsFolder}, {Name: "tmp", MountPath: tempFolder},
		{Name: "cell", MountPath: cellFolder, ReadOnly: true},
	}
	empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	spec.Volumes = []corev1.Volume{
		{Name: "models", VolumeSource: empty}, {Name: "tmp", VolumeSource: empty},
		{Name: "cell", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: cell.Name(m.Fleet, m.Cell)},
			Items:                []corev1.KeyToPath{{Key: cell.KeyMachines, Path: cell.KeyMachines}},
		}}},
	}
	claims, secrets := map[string]bool{}, map[string]bool{}
	for _, x := range m.Models {
		if rest, ok := strings.CutPrefix(x.URI, "pvc://"); ok {
			name, _, _ := strings.Cut(rest, "/")
			claims[name] = true
		}
		if x.Secret != "" {
			secrets[x.Secret] = true
		}
	}
	for k, name := range slices.Sorted(maps.Keys(claims)) {
		volume := fmt.Sprintf("claim-%d", k)
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name, ReadOnly: true},
		}})
		mounts = append(mounts, corev1.VolumeMount{Name: volume, MountPath: claimsFolder + "/" + name, ReadOnly: true})
	}
	for k, name := range slices.Sorted(maps.Keys(secrets)) {
		volume := fmt.Sprintf("secret-%d", k)
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: name, Optional: ptr.To(true)},
		}})
		mounts = append(mounts, corev1.VolumeMount{Name: volume, MountPath: secretFolder + "/" + name, ReadOnly: true})
	}
	return mounts
}

// overlay lays a template over a pod, as a strategic merge patch.
func overlay(p *corev1.Pod, over *corev1.PodTemplateSpec) error {
	base, err := json.Marshal(corev1.PodTemplateSpec{ObjectMeta: p.ObjectMeta, Spec: p.Spec})
	if err != nil {
		return err
	}
	patch, err := json.Marshal(over)
	if err != nil {
		return err
	}
	var fields map[string]any
	if err := json.Unmarshal(patch, &fields); err != nil {
		return err
	}
	if patch, err = json.Marshal(withoutNull(fields)); err != nil {
		return err
	}
	merged, err := strategicpatch.StrategicMergePatch(base, patch, corev1.PodTemplateSpec{})
	if err != nil {
		return err
	}
	var out corev1.PodTemplateSpec
	if err := json.Unmarshal(merged, &out); err != nil {
		return err
	}
	p.ObjectMeta, p.Spec = out.ObjectMeta, out.Spec
	return nil
}

// withoutNull drops fields that are null: in a patch they would delete, and a marshalled type has them where nobody
// wrote anything, such as creationTimestamp and containers.
func withoutNull(x map[string]any) map[string]any {
	for k, v := range x {
		switch v := v.(type) {
		case nil:
			delete(x, k)
		case map[string]any:
			withoutNull(v)
		}
	}
	return x
}
