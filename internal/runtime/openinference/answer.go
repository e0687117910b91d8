package openinference

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// description is what a server says that its answers for a model are. It demands nothing that the server does not say.
type description struct {
	outputs []tensor.Spec
	batched bool // every output has a row for every item
	// decoupled says that the model gives any number of answers to a request.
	decoupled bool
}

// learnAnswers asks the server what the answers for a variant are.
func (r *runner) learnAnswers(ctx context.Context, v serving.VariantID, m Model) {
	about, err := r.client.ModelMetadata(ctx, &pb.ModelMetadataRequest{Name: m.Name, Version: m.Version})
	if err != nil {
		return
	}
	d := description{outputs: specs(about.GetOutputs())}
	if c, err := r.client.ModelConfig(ctx, &pb.ModelConfigRequest{Name: m.Name, Version: m.Version}); err == nil {
		d.batched = c.GetConfig().GetMaxBatchSize() > 0
		d.decoupled = c.GetConfig().GetModelTransactionPolicy().GetDecoupled()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answers == nil {
		r.answers = make(map[serving.VariantID]description)
	}
	r.answers[v] = d
}

func (r *runner) describedAnswer(v serving.VariantID) description {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answers[v]
}

// ask has a server give the outputs that are wanted alone, where it is known which it has. It returns the description
// of such an answer. Nil wants all.
func (d description) ask(r *pb.ModelInferRequest, wanted []string) description {
	unwanted := func(s tensor.Spec) bool { return !slices.Contains(wanted, s.Name) }
	if wanted == nil || !slices.ContainsFunc(d.outputs, unwanted) {
		return d
	}
	some := slices.DeleteFunc(slices.Clone(d.outputs), unwanted)
	if len(some) == 0 {
		return d
	}
	d.outputs = some
	for k := range some {
		r.Outputs = append(r.Outputs, &pb.ModelInferRequest_InferRequestedOutputTensor{Name: some[k].Name})
	}
	return d
}

func specs(in []*pb.ModelMetadataResponse_TensorMetadata) []tensor.Spec {
	out := make([]tensor.Spec, len(in))
	for k, t := range in {
		out[k] = tensor.Spec{Name: t.GetName(), DType: tensor.ParseDType(t.GetDatatype()), Shape: t.GetShape()}
	}
	return out
}

func rowsError(output string, shape []int64, items int) error {
	return fmt.Errorf("output %q has shape %v, want %d rows, one for each item of the batch: "+
		"a model that gives others needs max_batch: 1", output, shape, items)
}

// check returns an error for outputs that do not fit the description: their names, types, shapes and rows. Outputs that
// are not described may come beside.
func (d *description) check(outputs []tensor.Tensor, items int) error {
	if len(outputs) == 0 {
		return errors.New("it has no outputs")
	}
	for k := range d.outputs {
		want := &d.outputs[k]
		at := slices.IndexFunc(outputs, func(t tensor.Tensor) bool { return t.Name == want.Name })
		if at < 0 {
			return fmt.Errorf("output %q is missing", want.Name)
		}
		got := &outputs[at]
		if want.DType != tensor.Invalid && got.DType != want.DType {
			return fmt.Errorf("output %q is %s, the server describes %s", want.Name, got.DType, want.DType)
		}
		if len(want.Shape) > 0 && !tensor.Fits(got.Shape, want.Shape) { // some servers describe no shapes
			return fmt.Errorf("output %q has shape %v, the server describes %v", want.Name, got.Shape, want.Shape)
		}
		if d.batched && (len(got.Shape) == 0 || got.Shape[0] != int64(items)) {
			return rowsError(want.Name, got.Shape, items)
		}
	}
	return nil
}
