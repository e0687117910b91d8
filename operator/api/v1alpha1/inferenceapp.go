package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Objective is a latency objective.
type Objective struct {
	// Latency within which a query is to be answered, such as `50ms`.
	Latency metav1.Duration `json:"latency"`
	// Percentile of the queries that must meet it, such as `99`. +kubebuilder:default="99"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0')) &&
	// !quantity(string(self)).isGreaterThan(quantity('100'))",message="percentile must be more than 0 and at most 100"
	Percentile *resource.Quantity `json:"percentile,omitempty"`
}

// Model says where a model's files are.
type Model struct {
	// URI of the model: `pvc://CLAIM/PATH`, `oci://IMAGE@sha256:...`, `https://...`, `s3://BUCKET/KEY`, or
	// `file:///PATH` for one that the worker's image holds. A file `model.onnx`, or a folder or archive laid out as a
	// model's folder in a Triton repository.
	// +kubebuilder:validation:Pattern=`^(pvc|oci|https|s3|file)://.+`
	URI string `json:"uri"`
	// SHA256 of the file or archive, 64 hexadecimal digits. Needed with https.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	SHA256 string `json:"sha256,omitempty"`
	// Secret with what the download needs: `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, or `token`. Default: none.
	Secret string `json:"secret,omitempty"`
}

// Variant is a trained model that can answer.
//
// +kubebuilder:validation:XValidation:rule="!self.model.uri.startsWith('https://') ||
// has(self.model.sha256)",message="a model from https needs sha256, so that what is served is what was meant"
type Variant struct {
	// Name of the variant, unique in its app.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Model says where its files are.
	Model Model `json:"model"`
	// Accuracy from 0 to 1, as a text such as `"0.913"`. Default: what a profile says, else 1.
	//
	// A text of bounded length: the API server refuses a rule about texts of any length for so many variants.
	// +kubebuilder:validation:Schemaless +kubebuilder:validation:Type=string +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && !quantity(self).isLessThan(quantity('0')) &&
	// !quantity(self).isGreaterThan(quantity('1'))",message="accuracy must be from 0 to 1"
	Accuracy *resource.Quantity `json:"accuracy,omitempty"`
	// MaxBatch is the largest number of items of one run. Default: the model's own bound, else 64.
	// +kubebuilder:validation:Minimum=1
	MaxBatch int32 `json:"maxBatch,omitempty"`
	// Memory that the variant needs when it is loaded. Default: the size of its file.
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// Edge feeds one stage with the results of another.
type Edge struct {
	// To is the stage that is fed.
	To string `json:"to"`
	// FanOut is how many items are passed on for each one served, such as `2.5`. Default: 1.
	FanOut *resource.Quantity `json:"fanOut,omitempty"`
	// Rows names the tensor whose rows become the items of the next stage. Default: every item is handed on as one.
	Rows string `json:"rows,omitempty"`
}

// Stage is one step of an app that has several.
//
// +kubebuilder:validation:XValidation:rule="has(self.variants) != has(self.function)",message="a stage has either
// variants or a function"
type Stage struct {
	// Name of the step, unique in its app.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Variants that can do the step.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Variants []Variant `json:"variants,omitempty"`
	// Function does the step without a model (docs/builtin.md).
	Function string `json:"function,omitempty"`
	// With holds the options of the function.
	With map[string]string `json:"with,omitempty"`
	// Stateful keeps something from query to query of a stream.
	Stateful bool `json:"stateful,omitempty"`
	// Inputs says which tensors of the query the inputs of the model are. Default: those of the same name.
	Inputs map[string]string `json:"inputs,omitempty"`
	// Outputs gives the outputs of the model other names in the query. Default: they keep theirs.
	Outputs map[string]string `json:"outputs,omitempty"`
	// Next lists the steps that this one feeds.
	Next []Edge `json:"next,omitempty"`
}

// Tensor describes one input or output.
type Tensor struct {
	// Name of the tensor.
	Name string `json:"name"`
	// DataType is the protocol's name of the element type, such as `FP32`.
	// +kubebuilder:validation:Enum=BOOL;UINT8;UINT16;UINT32;UINT64;INT8;INT16;INT32;INT64;FP16;FP32;FP64;BYTES;BF16
	DataType string `json:"dataType"`
	// Shape with -1 for variable dimensions; the first dimension is the batch.
	Shape []int64 `json:"shape"`
}

// InferenceAppSpec says what an app is to be.
//
// +kubebuilder:validation:XValidation:rule="has(self.variants) != has(self.stages)",message="an app has either variants
// or stages" +kubebuilder:validation:XValidation:rule="!has(self.accuracyTarget) || !has(self.accuracyFloor) ||
// !quantity(string(self.accuracyTarget)).isLessThan(quantity(string(self.accuracyFloor)))",message="accuracyTarget must
// not be below accuracyFloor" +kubebuilder:validation:XValidation:rule="!has(self.maxInstances) || self.maxInstances >=
// self.minInstances",message="maxInstances must not be below minInstances"
type InferenceAppSpec struct {
	// Fleet that serves the app, in the same namespace.
	// +kubebuilder:default=default
	// +kubebuilder:validation:MinLength=1
	Fleet string `json:"fleet,omitempty"`
	// Objective of the app's queries.
	Objective Objective `json:"objective"`
	// AccuracyTarget is the mean accuracy of answers to keep, such as `0.92`. Default: as accurate as the machines
	// allow. +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('0')) &&
	// !quantity(string(self)).isGreaterThan(quantity('1'))",message="accuracyTarget must be from 0 to 1"
	AccuracyTarget *resource.Quantity `json:"accuracyTarget,omitempty"`
	// AccuracyFloor is the least accuracy of a variant that answers. Default: 0.
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('0')) &&
	// !quantity(string(self)).isGreaterThan(quantity('1'))",message="accuracyFloor must be from 0 to 1"
	AccuracyFloor *resource.Quantity `json:"accuracyFloor,omitempty"`
	// Weight is the importance of the app relative to the others of its fleet. +kubebuilder:default="1"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="weight
	// must be more than 0"
	Weight *resource.Quantity `json:"weight,omitempty"`
	// Late says what happens to a query that can no longer be on time: `drop` answers with an error at once,
	// `serve-late` serves it all the same.
	// +kubebuilder:validation:Enum=drop;serve-late
	// +kubebuilder:default=drop
	Late string `json:"late,omitempty"`
	// Demand in queries/s that the first plan is made for. Default: 0, machines come as queries do.
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('0'))",message="demand is
	// in queries/s and must not be negative"
	Demand *resource.Quantity `json:"demand,omitempty"`
	// MinInstances is the least number of instances of every stage that are ready. `kubectl scale` and autoscalers
	// set it. Plans have more where the load needs them.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	MinInstances int32 `json:"minInstances"`
	// MaxInstances is the largest number of instances of a stage. Default: not limited.
	// +kubebuilder:validation:Minimum=1
	MaxInstances *int32 `json:"maxInstances,omitempty"`
	// Variants that can answer, when the app has one stage.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Variants []Variant `json:"variants,omitempty"`
	// Stages of an app that has several. Exactly one of them is fed by no other.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Stages []Stage `json:"stages,omitempty"`
	// Inputs lists the tensors of a request. Default: what the models say.
	Inputs []Tensor `json:"inputs,omitempty"`
	// Outputs lists the tensors of an answer. Default: what the models say.
	Outputs []Tensor `json:"outputs,omitempty"`
}

// InferenceAppStatus is how an app does. The figures are of the last minute.
type InferenceAppStatus struct {
	// ObservedGeneration is the generation of the spec that this describes.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions: `Accepted` (false where the spec cannot be used; its message says why), `Ready` (queries are
	// answered), `ObjectiveMet` (as many in time as the objective's percentile asks),
	// `Planned` (the plan carries the demand; its message says what it lacks and what would mend that), `ModelsReady`
	// (all models are there, with the right digest).
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Cell that serves it.
	Cell *int32 `json:"cell,omitempty"`
	// Endpoint to send queries to, HTTP, as `http://HOST:PORT/v2/models/APP`, or https where the fleet
	// has TLS.
	Endpoint string `json:"endpoint,omitempty"`
	// Rate of queries, in queries/s.
	Rate string `json:"rate,omitempty"`
	// Violations is the share of queries that were late or dropped, such as `0.4%`.
	Violations string `json:"violations,omitempty"`
	// Accuracy is the mean accuracy of answers.
	Accuracy string `json:"accuracy,omitempty"`
	// CostPerHour of its part of the machines, in $/h.
	CostPerHour string `json:"costPerHour,omitempty"`
	// Machines that have one of its variants loaded.
	Machines int32 `json:"machines,omitempty"`
	// Instances that are ready, the fewest of any stage. What autoscalers read as the present size.
	Instances int32 `json:"instances,omitempty"`
	// Selector of the worker pods of the app, for autoscalers.
	Selector string `json:"selector,omitempty"`
	// Lacks says in a sentence what keeps the plan from carrying the demand. Empty where it does.
	Lacks string `json:"lacks,omitempty"`
	// Mends lists the cheapest changes that would mend it, each a sentence.
	Mends []string `json:"mends,omitempty"`
}

// InferenceApp is what clients call: its name is the model name of the Open Inference Protocol.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.minInstances,statuspath=.status.instances,selectorpath=.status.selector
// +kubebuilder:resource:shortName=iapp,categories=sluice
// +kubebuilder:printcolumn:name="Objective",type=string,JSONPath=`.spec.objective.latency`
// +kubebuilder:printcolumn:name="Met",type=string,JSONPath=`.status.conditions[?(@.type=="ObjectiveMet")].status`
// +kubebuilder:printcolumn:name="Queries/s",type=string,JSONPath=`.status.rate`
// +kubebuilder:printcolumn:name="Late",type=string,JSONPath=`.status.violations`
// +kubebuilder:printcolumn:name="Accuracy",type=string,JSONPath=`.status.accuracy`
// +kubebuilder:printcolumn:name="Machines",type=integer,JSONPath=`.status.machines`
// +kubebuilder:printcolumn:name="$/h",type=string,JSONPath=`.status.costPerHour`
// +kubebuilder:printcolumn:name="Lacks",type=string,JSONPath=`.status.lacks`,priority=1
type InferenceApp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   InferenceAppSpec   `json:"spec"`
	Status InferenceAppStatus `json:"status,omitempty"`
}

// InferenceAppList is a list of apps.
//
// +kubebuilder:object:root=true
type InferenceAppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []InferenceApp `json:"items"`
}

func init() { SchemeBuilder.Register(&InferenceApp{}, &InferenceAppList{}) }
