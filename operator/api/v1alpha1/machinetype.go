package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Tenure says whether leaving a machine idle saves its price.
//
// +kubebuilder:validation:Enum=owned;rented
type Tenure string

// The tenures.
const (
	Owned  Tenure = "owned"  // there anyway
	Rented Tenure = "rented" // paid for while it is used
)

// Backend says what runs on a worker.
//
// +kubebuilder:validation:Enum=sluice;triton;fake
type Backend string

// The backends.
const (
	BackendSluice Backend = "sluice" // `sluice node`: ONNX Runtime and Python behind the Open Inference Protocol
	BackendTriton Backend = "triton" // any server of the protocol with load and unload, such as Triton
	BackendFake   Backend = "fake"   // answers without a model, for tests
)

// Part is a share of a machine that an instance gets for itself.
type Part struct {
	// Name by which profiles list its latencies.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Cores of its threads.
	// +kubebuilder:validation:Minimum=1
	Cores int32 `json:"cores"`
	// Percent of one of the machine's accelerators, 0 to 100.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percent int32 `json:"percent,omitempty"`
	// Memory that it has.
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// MachineTypeSpec describes machines of one kind. Each is one worker pod.
//
// +kubebuilder:validation:XValidation:rule="!has(self.tenure) || self.tenure != 'rented' || (has(self.pricePerHour) &&
// quantity(string(self.pricePerHour)).isGreaterThan(quantity('0')))",message="a rented machine needs pricePerHour, in
// $/h; say tenure: owned for one that is there anyway"
type MachineTypeSpec struct {
	// Fleet that the machines belong to, in the same namespace.
	// +kubebuilder:default=default
	// +kubebuilder:validation:MinLength=1
	Fleet string `json:"fleet,omitempty"`
	// Tenure: `rented` machines are created when a plan needs them and given back after, `owned` ones are always there.
	// +kubebuilder:default=rented
	Tenure Tenure `json:"tenure,omitempty"`
	// PricePerHour of one machine, in $/h, such as `0.526`.
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('0'))",message="pricePerHour
	// must not be negative"
	PricePerHour *resource.Quantity `json:"pricePerHour,omitempty"`
	// Most is how many there can be.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Most int32 `json:"most"`
	// Cores is the number of threads that a machine can run at once; its pod asks for as many processors.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:default=1
	Cores int32 `json:"cores,omitempty"`
	// Memory is what its loaded variants may need together; its pod asks for as much. On machines with accelerators it
	// is that of the accelerators, and podTemplate says what the pod asks for. Default: not limited.
	Memory *resource.Quantity `json:"memory,omitempty"`
	// Accelerators that a machine has, as an extended resource such as `nvidia.com/gpu` and a number. Default: none.
	Accelerators map[corev1.ResourceName]int32 `json:"accelerators,omitempty"`
	// Parts of a machine that instances may have for themselves. Default: none, instances share machines in time.
	// +listType=map
	// +listMapKey=name
	Parts []Part `json:"parts,omitempty"`
	// Backend says what runs in the pods.
	// +kubebuilder:default=sluice
	Backend Backend `json:"backend,omitempty"`
	// Image of the pods. Default: the fleet's.
	Image string `json:"image,omitempty"`
	// NodeSelector of the pods. Default: none.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Affinity of the pods. Default: none.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// Tolerations of the pods. Default: none.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// PodTemplate is laid over the pods that the dispatchers make, as a strategic merge patch: labels, annotations,
	// volumes, environment, security. Default: none.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	PodTemplate *corev1.PodTemplateSpec `json:"podTemplate,omitempty"`
}

// MachineTypeStatus says what there is of it.
type MachineTypeStatus struct {
	// ObservedGeneration is the generation of the spec that this describes.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions: `Available` (false while machines stay pending), `Accepted` (false where the spec cannot be used).
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Wanted is how many the plans in force need.
	Wanted int32 `json:"wanted,omitempty"`
	// Ready is how many are ready.
	Ready int32 `json:"ready,omitempty"`
	// Pending is how many wait for a node.
	Pending int32 `json:"pending,omitempty"`
	// StartTime is how long the last ones took from being asked for to ready: the median of up to twenty.
	StartTime *metav1.Duration `json:"startTime,omitempty"`
}

// MachineType is a kind of machine that a fleet may use.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=sluice
// +kubebuilder:printcolumn:name="Fleet",type=string,JSONPath=`.spec.fleet`
// +kubebuilder:printcolumn:name="Tenure",type=string,JSONPath=`.spec.tenure`
// +kubebuilder:printcolumn:name="$/h",type=string,JSONPath=`.spec.pricePerHour`
// +kubebuilder:printcolumn:name="Most",type=integer,JSONPath=`.spec.most`
// +kubebuilder:printcolumn:name="Wanted",type=integer,JSONPath=`.status.wanted`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Pending",type=integer,JSONPath=`.status.pending`
// +kubebuilder:printcolumn:name="Start",type=string,JSONPath=`.status.startTime`,priority=1
type MachineType struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MachineTypeSpec   `json:"spec"`
	Status MachineTypeStatus `json:"status,omitempty"`
}

// MachineTypeList is a list of machine types.
//
// +kubebuilder:object:root=true
type MachineTypeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []MachineType `json:"items"`
}

func init() { SchemeBuilder.Register(&MachineType{}, &MachineTypeList{}) }
