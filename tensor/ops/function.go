package ops

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/tensor"
)

// maxElements bounds every output, in elements, and the sizes that a tensor without elements may claim.
const maxElements = 1 << 26

// Port is a tensor that a function takes or gives.
type Port struct {
	Name     string
	DTypes   []tensor.DType // any of these; empty for every type
	Ranks    []int          // any of these numbers of dimensions; empty for every number
	Optional bool           // of inputs: may be left out
	Whole    bool           // of inputs: does not have a row for each item
	Doc      string         // its shape and meaning
}

// Call is what a function is asked: one part of one query.
type Call struct {
	Inputs []tensor.Tensor // found by name; those that the function does not take are passed over
	Offset int             // first of the query's items, which rows of indices count from
	State  []byte          // of a stateful function, as its last call gave it; nil at the start of a stream
}

// Result is what a function answers. It shares no memory with the call.
type Result struct {
	Outputs []tensor.Tensor
	State   []byte // to be given to the next call; nil of functions without state
}

// Function is a function with its options set. It may be called by any number of goroutines at once.
type Function struct {
	kind *kind
	body body
}

// kind is a function as it is registered.
type kind struct {
	name, doc string
	inputs    []Port
	outputs   []Port
	options   []Option
	stateful  bool
	framed    bool // boxes of two dimensions are all of one item
	build     func(*settings) body
}

// body does the work. Inputs come by port, nil where an optional one is missing.
type body interface {
	// specs returns what the outputs are like, by port. A nil shape is one that is not known.
	specs(in []*tensor.Spec) ([]tensor.Spec, error)
	run(in []*tensor.Tensor, c *Call) (outputs []tensor.Tensor, state []byte, err error)
}

// kinds lists the functions by name.
var kinds = []*kind{&argmaxKind, &cropKind, &nmsKind, &reshapeKind, &resizeKind, &thresholdKind, &topkKind, &trackKind}

// Names lists the functions, sorted.
func Names() []string {
	out := make([]string, len(kinds))
	for i, k := range kinds {
		out[i] = k.name
	}
	return out
}

func find(name string) *kind {
	at := slices.IndexFunc(kinds, func(k *kind) bool { return k.name == name })
	if at < 0 {
		return nil
	}
	return kinds[at]
}

// New sets a function's options, which are texts as they stand in a file. The error is an OptionErrors, or says that
// there is no such function.
func New(name string, with map[string]string) (*Function, error) {
	k := find(name)
	if k == nil {
		return nil, fmt.Errorf("there is no function %q: there is %s", name, strings.Join(Names(), ", "))
	}
	s := newSettings(k, with)
	b := k.build(s)
	if len(s.errs) > 0 {
		return nil, s.errs
	}
	return &Function{k, b}, nil
}

// Stateful tells whether the function of a name keeps something from call to call of a stream; false when there is
// none.
func Stateful(name string) bool {
	k := find(name)
	return k != nil && k.stateful
}

// Name returns the function's name.
func (f *Function) Name() string { return f.kind.name }

// Doc says in a sentence what the function does.
func (f *Function) Doc() string { return f.kind.doc }

// Stateful tells whether the function keeps something from call to call of a stream.
func (f *Function) Stateful() bool { return f.kind.stateful }

// ItemRows tells whether the first dimension of every input counts items, as that of a model's inputs does, for inputs
// of these descriptions. It does not where boxes come beside the one picture that they are in.
func (f *Function) ItemRows(inputs []tensor.Spec) bool {
	return !f.single(inputs) && !slices.ContainsFunc(f.kind.inputs, func(p Port) bool { return p.Whole })
}

// Inputs lists the tensors that the function takes.
func (f *Function) Inputs() []Port { return f.kind.inputs }

// Outputs lists the tensors that the function gives, all of them at every call.
func (f *Function) Outputs() []Port { return f.kind.outputs }

// Specs returns what the outputs are like for inputs of these descriptions, or says which input does not fit.
// Dimensions that are not known are -1; a nil shape is not known at all.
func (f *Function) Specs(inputs []tensor.Spec) ([]tensor.Spec, error) {
	in := make([]*tensor.Spec, len(f.kind.inputs))
	for i := range f.kind.inputs {
		p := &f.kind.inputs[i]
		at := slices.IndexFunc(inputs, func(s tensor.Spec) bool { return s.Name == p.Name })
		if at < 0 {
			if !p.Optional {
				return nil, fmt.Errorf("input %q is missing: %s", p.Name, p.Doc)
			}
			continue
		}
		if err := p.fits(inputs[at].DType, inputs[at].Shape); err != nil {
			return nil, err
		}
		in[i] = &inputs[at]
	}
	out, err := f.body.specs(in)
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i].Name = f.kind.outputs[i].Name
	}
	return out, nil
}

// Run answers a call, or says which input is not as it must be.
func (f *Function) Run(c *Call) (Result, error) {
	in := make([]*tensor.Tensor, len(f.kind.inputs))
	for i := range f.kind.inputs {
		p := &f.kind.inputs[i]
		at := slices.IndexFunc(c.Inputs, func(t tensor.Tensor) bool { return t.Name == p.Name })
		if at < 0 {
			if !p.Optional {
				return Result{}, fmt.Errorf("%s: input %q is missing: %s", f.kind.name, p.Name, p.Doc)
			}
			continue
		}
		in[i] = &c.Inputs[at]
		if err := in[i].Validate(); err != nil {
			return Result{}, fmt.Errorf("%s: %w", f.kind.name, err)
		}
		if err := p.fits(in[i].DType, in[i].Shape); err != nil {
			return Result{}, fmt.Errorf("%s: %w", f.kind.name, err)
		}
		if err := p.bounded(in[i].Shape); err != nil {
			return Result{}, fmt.Errorf("%s: %w", f.kind.name, err)
		}
	}
	outputs, state, err := f.body.run(in, c)
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", f.kind.name, err)
	}
	for i := range outputs {
		outputs[i].Name = f.kind.outputs[i].Name
	}
	return Result{outputs, state}, nil
}

// bounded refuses a tensor that has no elements because of one dimension and claims any number of rows in another: work
// is done for rows, and those of tensors with elements are bounded by their bytes.
func (p *Port) bounded(shape []int64) error {
	if !slices.Contains(shape, 0) {
		return nil
	}
	rest := slices.DeleteFunc(slices.Clone(shape), func(d int64) bool { return d == 0 })
	if _, err := tensor.Elements(rest, maxElements); err != nil {
		return fmt.Errorf("input %q of shape %v is empty and larger than %d", p.Name, shape, maxElements)
	}
	return nil
}

// fits tells whether a tensor can be the port's. A nil shape of a description is not known, and fits.
func (p *Port) fits(d tensor.DType, shape []int64) error {
	if len(p.DTypes) > 0 && !slices.Contains(p.DTypes, d) {
		var want []string
		for _, x := range p.DTypes {
			want = append(want, x.String())
		}
		return fmt.Errorf("input %q is of datatype %s, want %s", p.Name, d, strings.Join(want, " or "))
	}
	if shape != nil && len(p.Ranks) > 0 && !slices.Contains(p.Ranks, len(shape)) {
		return fmt.Errorf("input %q has shape %v: %s", p.Name, shape, p.Doc)
	}
	return nil
}
