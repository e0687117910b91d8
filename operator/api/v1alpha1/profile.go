package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Latency is what batches of one size take.
type Latency struct {
	// Batch is the number of items.
	// +kubebuilder:validation:Minimum=1
	Batch int32 `json:"batch"`
	// Mean of the runs.
	Mean metav1.Duration `json:"mean"`
	// P95 is their 95th percentile.
	P95 metav1.Duration `json:"p95"`
	// Deviation is their standard deviation.
	Deviation metav1.Duration `json:"deviation,omitempty"`
	// Runs that were measured.
	Runs int32 `json:"runs,omitempty"`
}

// ProfileSpec is what a variant takes on a machine type.
type ProfileSpec struct {
	// Fleet whose plans it is for, in the same namespace.
	// +kubebuilder:default=default
	Fleet string `json:"fleet,omitempty"`
	// App, Stage and Variant that were measured. An app of one stage has none.
	// +kubebuilder:validation:MinLength=1
	App   string `json:"app"`
	Stage string `json:"stage,omitempty"`
	// +kubebuilder:validation:MinLength=1
	Variant string `json:"variant"`
	// MachineType, or part of one, on which it was measured.
	// +kubebuilder:validation:MinLength=1
	MachineType string `json:"machineType"`
	// Model that was measured: its digest, or its URI where it has none. One of another model is out of date.
	Model string `json:"model,omitempty"`
	// Load is how long loading and warming up takes.
	Load *metav1.Duration `json:"load,omitempty"`
	// MemoryBytes that the variant takes when it is loaded.
	MemoryBytes int64 `json:"memoryBytes,omitempty"`
	// Latencies by batch, in increasing order.
	// +kubebuilder:validation:MinItems=1
	// +listType=map
	// +listMapKey=batch
	Latencies []Latency `json:"latencies"`
	// Measured is when, and On the node and processor it was measured on.
	Measured *metav1.Time `json:"measured,omitempty"`
	On       string       `json:"on,omitempty"`
}

// Profile is the measured latencies of a variant on a machine type. The operator makes one where a variant is new on a
// machine type; one that is written by hand is kept.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=sluice
// +kubebuilder:printcolumn:name="App",type=string,JSONPath=`.spec.app`
// +kubebuilder:printcolumn:name="Variant",type=string,JSONPath=`.spec.variant`
// +kubebuilder:printcolumn:name="Machine type",type=string,JSONPath=`.spec.machineType`
// +kubebuilder:printcolumn:name="Measured",type=date,JSONPath=`.spec.measured`
type Profile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ProfileSpec `json:"spec"`
}

// ProfileList is a list of profiles.
//
// +kubebuilder:object:root=true
type ProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Profile `json:"items"`
}

func init() { SchemeBuilder.Register(&Profile{}, &ProfileList{}) }
