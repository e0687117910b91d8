//go:build cgo

package onnx

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/sluice-serving/sluice/dataplane"
)

// selection is some of a model's outputs, for which a session is run, and some of its optional inputs.
type selection struct {
	outputs []int // in the model's order
	given   []int // of the optional inputs
	// asked are those of outputs that the runtime is asked for: all but those that are inputs as well, which a run does
	// not write to the memory that is bound to them.
	asked  []int
	s      *ort.DynamicAdvancedSession // takes those in given, and gives the outputs in asked, and no others
	outs   []ort.Value                 // of one run, by place in asked
	shapes map[string][][]int64        // output shapes by input shapes, for outputs the binding cannot allocate
}

// maxSelections bounds the selections that a session remembers beside that of all outputs.
const maxSelections = 64

// selected returns the selection of the outputs that any of the parts wants, and of the optional inputs that the first
// one has. Parts with such inputs are run alone.
func (s *session) selected(parts []dataplane.Portion) (*selection, error) {
	every := slices.ContainsFunc(parts, func(p dataplane.Portion) bool { return p.Wanted == nil })
	plain := len(parts[0].Inputs) == len(s.m.inputs)
	if every && plain {
		return s.all, nil
	}
	whole := plain
	outputs, optional := s.wanted[:len(s.m.outputs)], s.wanted[len(s.m.outputs):]
	for k := range outputs {
		if outputs[k] = 1; !every {
			outputs[k] = s.m.wanted(k, parts)
		}
		whole = whole && outputs[k] != 0
	}
	if whole {
		return s.all, nil
	}
	for k := range optional {
		if optional[k] = 0; input(&parts[0], -1, s.m.optional[k].Name) != nil {
			optional[k] = 1
		}
	}
	if c := s.some[string(s.wanted)]; c != nil {
		return c, nil
	}
	c, err := s.selection(s.wanted)
	if err != nil {
		return nil, err
	}
	if len(s.some) >= maxSelections {
		clear(s.some)
	}
	s.some[string(s.wanted)] = c
	return c, nil
}

// wanted is 1 for an output that any of the parts wants, or that is a state to keep; else 0.
func (m *model) wanted(k int, parts []dataplane.Portion) byte {
	name := m.outputs[k].Name
	if m.sequence != nil {
		for i := range m.sequence.States {
			if m.sequence.States[i].Output == name {
				return 1
			}
		}
	}
	for i := range parts {
		if slices.Contains(parts[i].Wanted, name) {
			return 1
		}
	}
	return 0
}

// holds returns an error for a batch whose outputs are known to take more memory than a batch may.
func (m *model) holds(c *selection, items int) error {
	if m.memory <= 0 || items == 1 {
		return nil
	}
	row := int64(0)
	for _, k := range c.asked {
		row += max(m.outputs[k].rowBytes, 0)
	}
	if row > m.memory/int64(items) {
		return fmt.Errorf("%w: its outputs have %d bytes for each of %d items, all of a batch at most %d",
			dataplane.ErrOutOfMemory, row, items, m.memory)
	}
	return nil
}

// selection makes a selection: 1 for each output and then each optional input that is part of it, else 0.
func (s *session) selection(wanted []byte) (*selection, error) {
	c := &selection{s: s.s, shapes: map[string][][]int64{}}
	for k := range s.m.outputs {
		if wanted[k] == 0 {
			continue
		}
		c.outputs = append(c.outputs, k)
		if s.m.outputs[k].input < 0 {
			c.asked = append(c.asked, k)
		}
	}
	inputs := make([]int, len(s.m.inputs))
	for k := range inputs {
		inputs[k] = k
	}
	for k := range s.m.optional {
		if wanted[len(s.m.outputs)+k] != 0 {
			c.given = append(c.given, k)
			inputs = append(inputs, len(s.m.inputs)+k)
		}
	}
	c.outs = make([]ort.Value, len(c.asked))
	if len(c.asked) == len(s.m.outputs) && len(c.given) == len(s.m.optional) {
		return c, nil
	}
	var err error
	c.s, err = narrowed(s.s, inputs, c.asked)
	return c, err
}

// narrowed returns a session that takes some inputs of s and gives some of its outputs. It is s else, and not to be
// destroyed. The runtime takes their names with each run, the binding with each session.
func narrowed(s *ort.DynamicAdvancedSession, inputs, outputs []int) (*ort.DynamicAdvancedSession, error) {
	// A DynamicAdvancedSession is a struct with one field, which points to an AdvancedSession.
	inner := **(**ort.AdvancedSession)(unsafe.Pointer(s))
	if err := errors.Join(choose(&inner, "inputNames", inputs), choose(&inner, "outputNames", outputs)); err != nil {
		return nil, err
	}
	out := new(ort.DynamicAdvancedSession)
	*(**ort.AdvancedSession)(unsafe.Pointer(out)) = &inner
	return out, nil
}

// choose replaces a list of names of a session by some of them.
func choose(inner *ort.AdvancedSession, list string, at []int) error {
	field := reflect.ValueOf(inner).Elem().FieldByName(list)
	if !field.IsValid() || field.Kind() != reflect.Slice || field.Type().Elem().Kind() != reflect.Pointer {
		return fmt.Errorf("the binding of ONNX Runtime keeps %s in another way", list)
	}
	all := (*[]unsafe.Pointer)(unsafe.Pointer(field.UnsafeAddr()))
	some := make([]unsafe.Pointer, len(at))
	for i, k := range at {
		some[i] = (*all)[k]
	}
	*all = some
	return nil
}
