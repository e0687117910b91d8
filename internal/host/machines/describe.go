package machines

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/internal/runtime/openinference"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Times of asking remote servers for the inputs and outputs of models: in all, for one of them to answer, and between
// two rounds. One that is absent must not keep the others from being asked.
const (
	RemoteTimeout = 10 * time.Second
	RemoteTry     = time.Second
	remotePause   = 200 * time.Millisecond
)

// Tensors are the inputs and outputs of a variant.
type Tensors struct {
	Inputs, Outputs []tensor.Spec
	Batched         bool // the first dimension counts items
}

// Describe returns the inputs and outputs of a variant: from the file, from its model, or from the server that has it.
func (b *Backends) Describe(ctx context.Context, v serving.VariantID) (Tensors, error) {
	spec, tables := b.Fleet.Tables.Spec, b.Fleet.Tables
	app, at := tables.Variants[v].App, spec.Variants[v].Stage
	several := len(spec.Apps[app].Stages) > 1
	if s := tables.Stages[at]; several && s.Inputs != nil {
		return Tensors{s.Inputs, s.Outputs, tables.Variants[v].Batched}, nil
	}
	if info := tables.Apps[app]; info.Inputs != nil &&
		(!several || at == spec.Source(app) && len(tables.Stages[at].Takes) == 0) {
		return Tensors{info.Inputs, info.Outputs, info.Batched}, nil
	}
	if x := &tables.Variants[v]; x.Inputs != nil && len(x.Inputs) == 0 { // its requests carry nothing, as is known
		return Tensors{x.Inputs, x.Outputs, x.Batched}, nil
	}
	return b.ask(ctx, v)
}

// ask returns the inputs and outputs of the model of a variant, from its file or from the server that has it.
func (b *Backends) ask(ctx context.Context, v serving.VariantID) (Tensors, error) {
	if b.Local != nil && b.Fleet.Tables.Variants[v].Path != "" {
		i, err := b.Local.Interface(v)
		return Tensors{i.Inputs, i.Outputs, i.Batched}, err
	}
	if p := b.inPython(v); p != nil {
		return b.askPython(ctx, p, v)
	}
	err := errors.New("give them under apps[].inputs")
	for {
		remotes := 0
		for _, x := range b.models {
			remote, ok := x.(*openinference.Backend)
			if !ok {
				continue
			}
			remotes++
			out, failed := describedBy(ctx, remote, v)
			if failed == nil {
				return out, nil
			}
			err = failed
		}
		select {
		case <-ctx.Done():
			remotes = 0
		case <-time.After(remotePause):
		}
		if remotes == 0 {
			return Tensors{}, fmt.Errorf("the inputs of variant %q are not known: %w",
				b.Fleet.Tables.Spec.Variants[v].Name, err)
		}
	}
}

// Decoupled reports whether the model of a variant gives any number of answers to a request, as the server that has it
// says. A server that does not answer at once is not asked again: its models give one.
func (b *Backends) Decoupled(ctx context.Context, v serving.VariantID) bool {
	for _, x := range b.models {
		remote, ok := x.(*openinference.Backend)
		if !ok || b.absent[remote] {
			continue
		}
		ctx, done := context.WithTimeout(ctx, RemoteTry)
		is, err := remote.Decoupled(ctx, v)
		if done(); err == nil {
			return is
		}
		if status.Code(err) != codes.Unimplemented {
			if b.absent == nil {
				b.absent = make(map[*openinference.Backend]bool)
			}
			b.absent[remote] = true
		}
	}
	return false
}

// describedBy asks one server, which may be absent.
func describedBy(ctx context.Context, remote *openinference.Backend, v serving.VariantID) (out Tensors, err error) {
	ctx, done := context.WithTimeout(ctx, RemoteTry)
	defer done()
	if out.Inputs, out.Outputs, err = remote.Interface(ctx, v); err != nil {
		return out, err
	}
	out.Batched = len(out.Inputs) > 0
	for _, s := range out.Inputs {
		out.Batched = out.Batched && len(s.Shape) > 0 && s.Shape[0] < 0
	}
	return out, nil
}
