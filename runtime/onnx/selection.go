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

// selection is some of a model's outputs, for which a session is run.
type selection struct {
	outputs []int // in the model's order
	// asked are those of outputs that the runtime is asked for: all but those that are inputs as well, which a run does
	// not write to the memory that is bound to them.
	asked  []int
	s      *ort.DynamicAdvancedSession // gives the outputs in asked, and no others
	outs   []ort.Value                 // of one run, by place in asked
	shapes map[string][][]int64        // output shapes by input shapes, for outputs the binding cannot allocate
}

// maxSelections bounds the selections that a session remembers beside that of all outputs.
const maxSelections = 64

// selected returns the selection of the outputs that any of the parts wants.
func (s *session) selected(parts []dataplane.Portion) (*selection, error) {
	for i := range parts {
		if parts[i].Wanted == nil {
			return s.all, nil
		}
	}
	whole := true
	for k := range s.m.outputs {
		s.wanted[k] = s.m.wanted(k, parts)
		whole = whole && s.wanted[k] != 0
	}
	if whole {
		return s.all, nil
	}
	if c := s.some[string(s.wanted)]; c != nil {
		return c, nil
	}
	c, err := s.selection(func(k int) bool { return s.wanted[k] != 0 })
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

// selection makes the selection of some outputs.
func (s *session) selection(wanted func(int) bool) (*selection, error) {
	c := &selection{s: s.s, shapes: map[string][][]int64{}}
	for k := range s.m.outputs {
		if !wanted(k) {
			continue
		}
		c.outputs = append(c.outputs, k)
		if s.m.outputs[k].input < 0 {
			c.asked = append(c.asked, k)
		}
	}
	c.outs = make([]ort.Value, len(c.asked))
	if len(c.asked) == len(s.m.outputs) {
		return c, nil
	}
	var err error
	c.s, err = narrowed(s.s, c.asked)
	return c, err
}

// narrowed returns a session that gives some outputs of s, and is it else: it is not to be destroyed. The runtime takes
// the names of outputs with each run, the binding with each session.
func narrowed(s *ort.DynamicAdvancedSession, outputs []int) (*ort.DynamicAdvancedSession, error) {
	// A DynamicAdvancedSession is a struct with one field, which points to an AdvancedSession.
	inner := **(**ort.AdvancedSession)(unsafe.Pointer(s))
	field := reflect.ValueOf(&inner).Elem().FieldByName("outputNames")
	if !field.IsValid() || field.Kind() != reflect.Slice || field.Type().Elem().Kind() != reflect.Pointer {
		return nil, errors.New("the binding of ONNX Runtime keeps the names of outputs in another way")
	}
	all := (*[]unsafe.Pointer)(unsafe.Pointer(field.UnsafeAddr()))
	some := make([]unsafe.Pointer, len(outputs))
	for i, k := range outputs {
		some[i] = (*all)[k]
	}
	*all = some
	out := new(ort.DynamicAdvancedSession)
	*(**ort.AdvancedSession)(unsafe.Pointer(out)) = &inner
	return out, nil
}
