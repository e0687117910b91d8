package resources

import (
	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/models/repository"
	"github.com/sluice-serving/sluice/tensor"
)

// LabelFunction marks an InferenceApp that was deployed as a function.
const LabelFunction = "sluice.dev/function"

// Function makes the InferenceApp of a function. uri is where workers find its file. The error is of kind fault.Usage
// for a place that cannot be, fault.Config for a function that no resource can be.
func Function(fn *config.Function, fleet, namespace, uri string) (*List, error) {
	if err := checkBase(uri); err != nil {
		return nil, err
	}
	switch {
	case fn.InPython():
		return nil, fault.Errorf(fault.Config, "model: %s is a file of Python: a fleet's functions are ONNX models",
			fn.Model)
	case !label(fn.Name):
		return nil, fault.Errorf(fault.Config, "name: %q cannot be a resource: use lower-case letters, digits and "+
			"dashes, at most %d of them", fn.Name, maxName)
	}
	d, err := repository.Describe(fn.Model)
	if err != nil {
		return nil, fault.Errorf(fault.Config, "model: %v", err)
	}
	if !d.Batched {
		return nil, fault.Errorf(fault.Config, "model: the first dimension of its tensors is no batch: a resource has "+
			"nothing like it")
	}
	sum, err := digest(fn.Model)
	if err != nil {
		return nil, fault.Errorf(fault.Config, "model: %v", err)
	}
	app := config.App{
		SLO: fn.SLO, MinInstances: fn.MinInstances, MaxInstances: fn.MaxInstances, Late: "serve-late",
		Inputs: tensors(d.Inputs), Outputs: tensors(d.Outputs),
	}
	v := config.Variant{Name: fn.Name, MaxBatch: fn.MaxBatch, Memory: fn.Memory, Accuracy: 1}
	l := &List{}
	meta := Meta{Name: fn.Name, Namespace: namespace, Labels: Labels{Function: "true"}}
	l.addApp(meta, fleet, &app, &v, model{URI: uri, SHA256: sum})
	if fn.Profile == "predict" {
		l.note("profile: a fleet measures every model on its machines")
	}
	if len(fn.Labels) > 0 {
		l.note("labels: they stay in the file; `kubectl label` gives the resource some")
	}
	return l, nil
}

// tensors are those of a model as a resource has them.
func tensors(list []tensor.Spec) (out []config.Tensor) {
	for _, x := range list {
		out = append(out, config.Tensor{Name: x.Name, DataType: x.DType.String(), Shape: x.Shape})
	}
	return out
}
