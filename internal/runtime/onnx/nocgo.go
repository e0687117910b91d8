//go:build !cgo

package onnx

import (
	"context"
	"fmt"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/runtime/native"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// errNoCgo is what a program says that was built without cgo: it plans and dispatches, and models run elsewhere.
var errNoCgo = fmt.Errorf("%w: this program was built without cgo and runs no models itself; take a release, build it "+
	"with CGO_ENABLED=1 and a C compiler, or let workers run them (workers[].backend.kind: openinference or supplied)",
	native.ErrMissing)

// Backend runs no models in a program without cgo. New never makes one.
type Backend struct{}

var _ dataplane.Backend = (*Backend)(nil)

// Interface is the inputs and outputs of a model.
type Interface struct {
	Inputs, Outputs []tensor.Spec
	// Batched says that the first dimension of every tensor counts items.
	Batched bool
}

// New always fails, with an error that wraps native.ErrMissing.
func New(Config) (*Backend, error) { return nil, errNoCgo }

// Bind does nothing.
func (*Backend) Bind(serving.VariantID, Model) {}

// Unbind does nothing.
func (*Backend) Unbind(serving.VariantID) {}

// Interface always fails.
func (*Backend) Interface(serving.VariantID) (Interface, error) { return Interface{}, errNoCgo }

// Launch always fails.
func (*Backend) Launch(context.Context, dataplane.InstanceSpec) (dataplane.Runner, error) {
	return nil, errNoCgo
}

// Open always fails.
func (*Backend) Open(context.Context, string, int, int, bool) (dataplane.Runner, error) {
	return nil, errNoCgo
}

// Optimize always fails.
func (*Backend) Optimize(string, string) error { return errNoCgo }

// Provider always fails.
func (*Backend) Provider(serving.WorkerID) (name string, passed, err error) { return "", nil, errNoCgo }

// Version returns "": there is no library.
func Version() string { return "" }

// Linked says whether the program can load the library at all.
const Linked = false

// Find always fails.
func Find() (native.Library, error) { return native.Library{}, errNoCgo }

// Library returns nothing: there is none.
func Library() native.Library { return native.Library{} }
