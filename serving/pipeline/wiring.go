package pipeline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/sluice-serving/sluice/tensor"
)

// Wiring says by which names a stage of an app of several stages takes and gives tensors, and what is known of them.
type Wiring struct {
	// Takes maps inputs of the stage's model or function to tensors of the query. An input that is not in it takes the
	// tensor of its own name. Where Inputs is not known and Takes has entries, those are all that the stage takes.
	Takes map[string]string
	// Gives maps outputs of the stage's model or function to the names that they have in the query. An output that is
	// not in it keeps its own.
	Gives map[string]string
	// Inputs and Outputs are what the stage's model or function takes and gives, by its own names; nil when it is not
	// known. A stage of which neither Inputs nor Takes is known takes all outputs of the stages that feed it, the first
	// stage all tensors of the request.
	Inputs, Outputs []tensor.Spec
	// Batch says of inputs of the stage's model that their tensors in the query have a batch dimension where the model
	// has none, or the other way round. Such tensors hold one item.
	Batch map[string]BatchChange
	// Length is what the length of an item is at the stage, of an input of its model; nil where it is not known, or
	// does not count.
	Length *tensor.Length
}

// BatchChange is what happens to the batch dimension of a tensor on its way to a stage.
type BatchChange uint8

// The changes.
const (
	KeepBatch BatchChange = iota
	AddBatch              // a first dimension of 1 is put before the others
	DropBatch             // a first dimension of 1 is taken away
)

// Take is an input of a stage's model and the tensor of the query that it is.
type Take struct{ Input, Name string }

// TakenAs returns the name in the query of the tensor that is an input of the stage.
func (w *Wiring) TakenAs(input string) string { return renamed(w.Takes, input) }

// GivenAs returns the name in the query of an output of the stage.
func (w *Wiring) GivenAs(output string) string { return renamed(w.Gives, output) }

func renamed(m map[string]string, name string) string {
	if to, ok := m[name]; ok {
		return to
	}
	return name
}

// Taken lists all that the stage takes: in the order of Inputs, or ordered by input where those are not known. Nil
// where nothing is known.
func (w *Wiring) Taken() (out []Take) {
	for _, s := range w.Inputs {
		out = append(out, Take{s.Name, w.TakenAs(s.Name)})
	}
	if w.Inputs == nil {
		for input, name := range w.Takes {
			out = append(out, Take{input, name})
		}
		slices.SortFunc(out, func(a, b Take) int { return cmp.Compare(a.Input, b.Input) })
	}
	return out
}

// check reports names in Takes and Gives that the stage's model does not have.
func (w *Wiring) check() error {
	if x := Unknown(w.Takes, w.Inputs); len(x) > 0 {
		return fmt.Errorf("%q is no input of its model, which has %v", x[0], Names(w.Inputs))
	}
	if x := Unknown(w.Gives, w.Outputs); len(x) > 0 {
		return fmt.Errorf("%q is no output of its model, which has %v", x[0], Names(w.Outputs))
	}
	return nil
}

// Unknown returns, in order, the keys of m that are no names of tensors in specs. It returns none where specs is nil,
// because then nothing is known of them.
func Unknown(m map[string]string, specs []tensor.Spec) (out []string) {
	if specs == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if Find(specs, name) == nil {
			out = append(out, name)
		}
	}
	return out
}

// Find returns the entry of specs with a name, or nil. The pointer points into specs.
func Find(specs []tensor.Spec, name string) *tensor.Spec {
	for k := range specs {
		if specs[k].Name == name {
			return &specs[k]
		}
	}
	return nil
}

// Names returns the names of tensors, in the order of specs.
func Names(specs []tensor.Spec) []string {
	out := make([]string, len(specs))
	for k := range specs {
		out[k] = specs[k].Name
	}
	return out
}
