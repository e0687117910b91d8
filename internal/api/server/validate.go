package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/tensor"
)

// newRequest checks a client's request against its model and makes a query of it. limit bounds the items of a request.
func newRequest(m *Model, version string, inputs []tensor.Tensor, p oip.Params, limit int) (*dataplane.Request, error) {
	pin, ok := m.pin(version)
	if !ok {
		return nil, unknownVersion(m, version)
	}
	items, err := checkInputs(m, inputs, limit)
	if err != nil {
		return nil, err
	}
	return &dataplane.Request{App: m.App, Inputs: inputs, Items: items, Length: m.Length.Of(inputs),
		Timeout: p.Timeout, Priority: p.Priority, MinAccuracy: p.MinAccuracy, Variant: pin.Variant,
		Generation: m.Generation, VariantGeneration: pin.Generation,
		Stream: p.Sequence, Begins: p.SequenceStart, Ends: p.SequenceEnd, Rate: p.SequenceRate,
		Timings: p.StageTimings}, nil
}

func versions(m *Model) string {
	s := ""
	for k, v := range m.allVersions() {
		if k > 0 {
			s += ", "
		}
		s += fmt.Sprintf("%s (%s)", v.Version, v.Name)
	}
	return s
}

// checkInputs compares inputs with the model's and returns the number of items they carry.
func checkInputs(m *Model, inputs []tensor.Tensor, limit int) (items int, err error) {
	items = 1
	first, extra := -1, 0 // of the inputs that have a row for each item; how many have not
	for k := range inputs {
		t := &inputs[k]
		optional, err := checkInput(m, k, t)
		if err != nil {
			return 0, err
		}
		if optional {
			extra++
		}
		if !m.Batched || optional {
			continue
		}
		if len(t.Shape) == 0 {
			return 0, oip.Errorf(oip.Invalid, inputField(k, t), "shape is [], the first dimension must count the items")
		}
		switch rows := t.Shape[0]; {
		case rows < 1:
			return 0, oip.Errorf(oip.Invalid, inputField(k, t),
				"shape %v has no items: the first dimension must be at least 1", tensor.Dims(t.Shape))
		case first < 0 && rows > int64(limit):
			return 0, oip.Errorf(oip.Invalid, inputField(k, t),
				"shape %v has %d items, at most %d are taken in one request (server.limits.items)",
				tensor.Dims(t.Shape), rows, limit)
		case first < 0 && rows > int64(m.MaxBatch):
			return 0, oip.Errorf(oip.Invalid, inputField(k, t),
				"shape %v has %d items, model %q takes at most %d in one request", tensor.Dims(t.Shape), rows, m.Name,
				m.MaxBatch)
		case first < 0:
			items, first = int(rows), k
		case rows != int64(items):
			return 0, oip.Errorf(oip.Invalid, inputField(k, t),
				"shape %v has %d items, inputs[%d] has %d: they must be the same", tensor.Dims(t.Shape), rows, first,
				items)
		}
	}
	if m.Inputs != nil && len(inputs)-extra < len(m.Inputs) {
		return 0, missingInputs(m, inputs)
	}
	if m.Whole {
		return 1, nil
	}
	return items, nil
}

// checkInput compares an input with that of the model, and tells whether it is an optional one.
func checkInput(m *Model, k int, t *tensor.Tensor) (optional bool, err error) {
	if m.Inputs == nil {
		return false, nil
	}
	named := func(s tensor.Spec) bool { return s.Name == t.Name }
	list := m.Inputs
	at := slices.IndexFunc(list, named)
	if at < 0 {
		list, optional = m.Optional, true
		at = slices.IndexFunc(list, named)
	}
	if at < 0 {
		return false, oip.Errorf(oip.Invalid, inputField(k, t), "is no input of model %q, which takes %s", m.Name,
			inputNames(m))
	}
	want := &list[at]
	if t.DType != want.DType {
		return false, oip.Errorf(oip.Invalid, inputField(k, t), "datatype is %s, model %q takes %s", t.DType, m.Name,
			want.DType)
	}
	if want.Shape != nil && !tensor.Fits(t.Shape, want.Shape) {
		return false, oip.Errorf(oip.Invalid, inputField(k, t), "shape is %v, model %q takes %v",
			tensor.Dims(t.Shape), m.Name, tensor.Dims(want.Shape))
	}
	return optional, nil
}

func inputField(k int, t *tensor.Tensor) string { return fmt.Sprintf("inputs[%d] %q", k, t.Name) }

// namingInputs has the error for a request without inputs name those that its model takes. It is none for a model that
// takes none.
func namingInputs(m *Model, err error) error {
	switch {
	case !errors.Is(err, oip.ErrNoInputs) || m.Inputs == nil:
	case len(m.Inputs) == 0:
		return nil
	default:
		return missingInputs(m, nil)
	}
	return err
}

// missingInputs is the error for inputs that the model needs and a request does not have, in Triton's words.
func missingInputs(m *Model, inputs []tensor.Tensor) error {
	var got, missing []string
	for k := range inputs {
		got = append(got, "'"+inputs[k].Name+"'")
	}
	for _, want := range m.Inputs {
		if !slices.ContainsFunc(inputs, func(t tensor.Tensor) bool { return t.Name == want.Name }) {
			missing = append(missing, "'"+want.Name+"'")
		}
	}
	return oip.Errorf(oip.Invalid, "inputs", "expected %d inputs but got %d inputs for model '%s'. Got input(s) [%s], "+
		"but missing required input(s) [%s]. Please provide all required input(s).", len(m.Inputs), len(inputs), m.Name,
		strings.Join(got, ","), strings.Join(missing, ","))
}

func inputNames(m *Model) string {
	if len(m.Inputs) == 0 {
		return "no inputs"
	}
	s := ""
	for k, in := range m.Inputs {
		if k > 0 {
			s += ", "
		}
		s += fmt.Sprintf("%s %s%v", in.Name, in.DType, tensor.Dims(in.Shape))
	}
	return s
}

// selectOutputs returns the outputs that a client asked for, in its order; all when it named none.
func selectOutputs(m *Model, outputs []tensor.Tensor, names []string) ([]tensor.Tensor, error) {
	if len(names) == 0 {
		return outputs, nil
	}
	out := make([]tensor.Tensor, 0, len(names))
	for k, name := range names {
		at := slices.IndexFunc(outputs, func(t tensor.Tensor) bool { return t.Name == name })
		if at < 0 {
			return nil, unexpected(m, k, name)
		}
		out = append(out, outputs[at])
	}
	return out, nil
}

// unexpected is the error for an output that the model does not have, in Triton's words.
func unexpected(m *Model, k int, name string) error {
	return oip.Errorf(oip.Invalid, fmt.Sprintf("outputs[%d]", k), "unexpected inference output '%.200s' for model '%s'",
		name, m.Name)
}

// checkOutputs returns an error, before anything runs, for an output that the model does not have or that is asked for
// twice.
func checkOutputs(m *Model, names []string) error {
	for k, name := range names {
		if slices.Contains(names[:k], name) {
			return oip.Errorf(oip.Invalid, fmt.Sprintf("outputs[%d]", k), "output '%s' already exists in request", name)
		}
		if m.Outputs != nil && !slices.ContainsFunc(m.Outputs, func(s tensor.Spec) bool { return s.Name == name }) {
			return unexpected(m, k, name)
		}
	}
	return nil
}
