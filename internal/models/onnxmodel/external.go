package onnxmodel

import (
	"errors"
	"fmt"
	"os"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxDepth bounds the nesting of graphs in attributes of nodes.
const maxDepth = 64

// External reports whether a model keeps tensors in other files: initializers, or constants of any node at any depth.
// Such a model must not be run if it comes from an untrusted source, because it may name any file of the machine.
func External(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, fmt.Errorf("read model: %w", err)
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return false, fmt.Errorf("read model %s: %w", path, err)
	}
	s := scan{w: &window{src: f, size: st.Size()}}
	err = s.message(modelKind, field{end: st.Size()}, 0)
	if errors.Is(err, errExternal) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read model %s: %w", path, err)
	}
	return false, nil
}

var errExternal = errors.New("external data")

// kind is a message type of onnx.proto that can contain tensors, at any depth.
type kind int

const (
	modelKind kind = iota
	graphKind
	nodeKind
	attributeKind
	tensorKind
	sparseKind
	functionKind
	trainingKind
)

// tensorFields maps the fields of a message that can contain tensors to their message types.
var tensorFields = map[kind]map[protowire.Number]kind{
	modelKind:     {7: graphKind, 20: trainingKind, 25: functionKind},
	graphKind:     {1: nodeKind, 5: tensorKind, 15: sparseKind},
	nodeKind:      {5: attributeKind},
	attributeKind: {5: tensorKind, 6: graphKind, 10: tensorKind, 11: graphKind, 22: sparseKind, 23: sparseKind},
	sparseKind:    {1: tensorKind, 2: tensorKind},
	functionKind:  {7: nodeKind, 11: attributeKind},
	trainingKind:  {1: graphKind, 2: graphKind},
}

type scan struct{ w *window }

func (s *scan) message(k kind, m field, depth int) error {
	if depth > maxDepth*4 {
		return fmt.Errorf("graphs nest deeper than %d", maxDepth)
	}
	return s.w.fields(m.start, m.end, func(f field) error {
		if k == tensorKind {
			// data_location EXTERNAL, or external_data.
			if f.is(14, protowire.VarintType) && f.value != 0 || f.is(13, protowire.BytesType) {
				return errExternal
			}
			return nil
		}
		if next, ok := tensorFields[k][f.num]; ok && f.is(f.num, protowire.BytesType) {
			return s.message(next, f, depth+1)
		}
		return nil
	})
}
