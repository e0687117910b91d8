// Package v1alpha1 holds sluice's resources: Fleet, MachineType, InferenceApp and Profile, of group sluice.dev.
//
// The comments of its fields are what `kubectl explain` prints. `make crds` makes the definitions in
// operator/config/crd and the deep copies from this package.
//
// +kubebuilder:object:generate=true
// +groupName=sluice.dev
package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

// GroupVersion is the group and version of the resources.
var GroupVersion = schema.GroupVersion{Group: "sluice.dev", Version: "v1alpha1"}

// SchemeBuilder collects the resources; AddToScheme adds them to a scheme.
var (
	SchemeBuilder = &scheme.Builder{GroupVersion: GroupVersion}
	AddToScheme   = SchemeBuilder.AddToScheme
)

// Names of labels and annotations on what the operator and the dispatchers make.
const (
	// LabelFleet has the name of the fleet on everything that belongs to it.
	LabelFleet = "sluice.dev/fleet"
	// LabelMachineType has the name of the machine type on worker pods.
	LabelMachineType = "sluice.dev/machine-type"
	// LabelCell has the number of the cell that a worker pod, configuration or lease belongs to, from 0.
	LabelCell = "sluice.dev/cell"
	// LabelMachine has the name of the machine in its cell's configuration on a worker pod.
	LabelMachine = "sluice.dev/machine"
	// LabelRole is `worker`, `dispatcher` or `operator` on pods.
	LabelRole = "sluice.dev/role"
)
