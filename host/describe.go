package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/runtime/openinference"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// remoteTimeout bounds the request to a remote server for the inputs and outputs of a model.
const remoteTimeout = 10 * time.Second

// tensors are the inputs and outputs of a variant.
type tensors struct {
	inputs, outputs []tensor.Spec
	batched         bool // the first dimension counts items
}

// describe returns the inputs and outputs of a variant: from the file, from its model, or from the server that has it.
func (b *backends) describe(v serving.VariantID) (tensors, error) {
	spec, tables := b.opened.Spec(), b.opened.tables
	app, at := tables.Variants[v].App, spec.Variants[v].Stage
	several := len(spec.Apps[app].Stages) > 1
	if s := tables.Stages[at]; several && s.Inputs != nil {
		return tensors{s.Inputs, s.Outputs, tables.Variants[v].Batched}, nil
	}
	if info := tables.Apps[app]; info.Inputs != nil &&
		(!several || at == spec.Source(app) && len(tables.Stages[at].Takes) == 0) {
		return tensors{info.Inputs, info.Outputs, info.Batched}, nil
	}
	ctx, done := context.WithTimeout(context.Background(), remoteTimeout)
	defer done()
	return b.ask(ctx, v)
}

// ask returns the inputs and outputs of the model of a variant, from its file or from the server that has it.
func (b *backends) ask(ctx context.Context, v serving.VariantID) (tensors, error) {
	if b.local != nil && b.opened.tables.Variants[v].Path != "" {
		i, err := b.local.Interface(v)
		return tensors{i.Inputs, i.Outputs, i.Batched}, err
	}
	err := errors.New("give them under apps[].inputs")
	for _, x := range b.models {
		remote, ok := x.(*openinference.Backend)
		if !ok {
			continue
		}
		var out tensors
		if out.inputs, out.outputs, err = remote.Interface(ctx, v); err == nil {
			out.batched = len(out.inputs) > 0
			for _, s := range out.inputs {
				out.batched = out.batched && len(s.Shape) > 0 && s.Shape[0] < 0
			}
			return out, nil
		}
	}
	return tensors{}, fmt.Errorf("the inputs of variant %q are not known: %w", b.opened.Spec().Variants[v].Name, err)
}
