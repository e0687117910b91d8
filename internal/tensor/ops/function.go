package ops

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/tensor"
)

// maxElements bounds every output, in elements, and the dimensions of a tensor without elements.
const maxElements = 1 << 26

// Port is an input or output of a function.
type Port struct {
	Name     string
	DTypes   []tensor.DType // any of these; empty for every type
	Ranks    []int          // any of these numbers of dimensions; empty for every number
	Optional bool           // of inputs: may be left out
	Whole    bool           // of inputs: the rows are not items
	Doc      string         // its shape and meaning
}

// Call is the input of a function: one part of one query.
type Call struct {
	Inputs []tensor.Tensor // found by name; unknown ones are ignored
	Offset int             // index in the query of the part's first item; index tensors count from the query's first
	State  []byte          // of a stateful function: State of the last Result; nil at the start of a stream
}

// Result is the output of a function. It shares no memory with the call.
type Result struct {
	Outputs []tensor.Tensor
	State   []byte // for the next call of the stream; nil for functions without state
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
	framed    bool // boxes of two dimensions all belong to one item
	build     func(*settings) body
}

// body does the work. Inputs come by port, nil where an optional one is missing.
type body interface {
	// specs returns the descriptions of the outputs, by port. A nil shape is not known.
	specs(in []*tensor.Spec) ([]tensor.Spec, error)
	run(in []*tensor.Tensor, c *Call) (outputs []tensor.Tensor, state []byte, err error)
}

// kinds lists the functions by name.
var kinds = []*kind{
	&argmaxKind, &constantKind, &cropKind, &ctcKind, &identityKind, &nmsKind, &normalizeKind, &regionsKind,
	&reshapeKind, &resizeKind, &thresholdKind, &topkKind, &trackKind, &windowKind,
}

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

// New returns the function of a name with its options set. with maps options to their text, as in a configuration. The
// error is an OptionErrors, or says that there is no such function.
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

// Stateful reports whether the function of a name keeps state from call to call of a stream. It is false for an unknown
// name.
func Stateful(name string) bool {
	k := find(name)
	return k != nil && k.stateful
}

// Name returns the function's name.
func (f *Function) Name() string { return f.kind.name }

// Doc says in a sentence what the function does.
func (f *Function) Doc() string { return f.kind.doc }

// Stateful reports whether the function keeps state from call to call of a stream; see Call.State.
func (f *Function) Stateful() bool { return f.kind.stateful }

// ItemRows reports whether the first dimension of every input counts items, for inputs of these descriptions. It does
// not when boxes come with the one picture that they belong to.
func (f *Function) ItemRows(inputs []tensor.Spec) bool {
	return !f.single(inputs) && !slices.ContainsFunc(f.kind.inputs, func(p Port) bool { return p.Whole })
}

// Inputs lists the function's inputs. The slice must not be changed.
func (f *Function) Inputs() []Port { return f.kind.inputs }

// Outputs lists the function's outputs. Every Result has all of them. The slice must not be changed.
func (f *Function) Outputs() []Port { return f.kind.outputs }

// Specs returns the descriptions of the outputs for inputs of these descriptions. It fails when an input does not fit;
// the error names it. Dimensions that are not known are -1; a nil shape is not known at all.
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

// Run runs the function. It fails when an input is not valid; the error names it.
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

// bounded returns an error for a tensor without elements that has a huge dimension. Work is done per row, and the rows
// of tensors without elements are not bounded by their bytes.
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

// fits returns an error if a tensor cannot be the port's. A nil shape is not known, and fits.
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
