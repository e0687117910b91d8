package onnxmodel

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
)

// Bounds on what Read accepts. Weights are skipped, never read, so that the size of a file does not matter.
const (
	maxValues    = 4096    // inputs, and outputs
	maxValueSize = 1 << 20 // bytes of one input's or output's declaration
	maxNames     = 1 << 20 // constants
	maxNameSize  = 4096    // bytes of a name
	maxRank      = 64
)

// Value is an input or output of a model. DType is 0 when it is not a tensor. Shape has -1 for a dimension that is not
// a fixed number; it is nil, and Ranked false, when the file does not say how many dimensions there are. Symbols has a
// name for each dimension, "" for one without: dimensions of one name are equal in a run. Foreign is a type that the
// protocol lacks, in ONNX's words: "sequence of FLOAT tensors". It is empty for a tensor of DTypes.
type Value struct {
	Name    string
	DType   DType
	Shape   []int64
	Symbols []string
	Ranked  bool

	Foreign string
}

// overridable is the version of the file format from which on a run may replace a constant that is an input as well.
// Before, every constant is an input.
const overridable = 4

// Info is the description of a model in its file, as ONNX Runtime has it.
type Info struct {
	IR       int64
	Opset    int64 // of the standard operator set; 0 when the file names none
	Producer string
	Graph    string
	Inputs   []Value
	Outputs  []Value
	Optional []Value // inputs for which the file has a constant, which a run may replace
}

// Read returns the inputs and outputs of a model file. It reads no weights and uses little memory for every file.
// Errors name the file.
func Read(path string) (*Info, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read model: %w", err)
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read model %s: %w", path, err)
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("read model %s: not a regular file", path)
	}
	info, err := read(f, st.Size())
	if err != nil {
		return nil, fmt.Errorf("read model %s: %w", path, err)
	}
	return info, nil
}

func read(src io.ReaderAt, size int64) (*Info, error) {
	r := &reader{w: &window{src: src, size: size}, constant: map[string]bool{}}
	if err := r.model(size); err != nil {
		return nil, err
	}
	if !r.hasGraph {
		return nil, errors.New("not an ONNX model: it holds no graph")
	}
	kept := r.info.Inputs[:0]
	for _, in := range r.info.Inputs {
		if !r.constant[in.Name] {
			kept = append(kept, in)
		} else if r.info.IR >= overridable {
			r.info.Optional = append(r.info.Optional, in)
		}
	}
	r.info.Inputs = kept
	if len(r.info.Outputs) == 0 {
		return nil, errors.New("the graph has no outputs")
	}
	return &r.info, nil
}

type reader struct {
	w        *window
	info     Info
	constant map[string]bool
	hasGraph bool
}

func (r *reader) model(size int64) error {
	return r.w.fields(0, size, func(f field) error {
		switch {
		case f.is(1, protowire.VarintType):
			r.info.IR = int64(f.value)
		case f.is(2, protowire.BytesType):
			return r.w.text(f, &r.info.Producer)
		case f.is(7, protowire.BytesType):
			r.hasGraph = true
			return r.graph(f)
		case f.is(8, protowire.BytesType):
			var op pb.OperatorSetIdProto
			if err := r.w.message(f, &op); err != nil {
				return fmt.Errorf("operator set: %w", err)
			}
			if op.Domain == "" || op.Domain == "ai.onnx" {
				r.info.Opset = op.Version
			}
		}
		return nil
	})
}

func (r *reader) graph(g field) error {
	return r.w.fields(g.start, g.end, func(f field) error {
		switch {
		case f.is(2, protowire.BytesType):
			return r.w.text(f, &r.info.Graph)
		case f.is(5, protowire.BytesType):
			return r.initializer(f)
		case f.is(11, protowire.BytesType):
			return r.value(f, "input", &r.info.Inputs)
		case f.is(12, protowire.BytesType):
			return r.value(f, "output", &r.info.Outputs)
		}
		return nil
	})
}

func (r *reader) initializer(t field) error {
	var name string
	err := r.w.fields(t.start, t.end, func(f field) error {
		if f.is(8, protowire.BytesType) {
			return r.w.text(f, &name)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("initializer: %w", err)
	}
	if len(r.constant) >= maxNames {
		return fmt.Errorf("more than %d initializers", maxNames)
	}
	r.constant[name] = true
	return nil
}

func (r *reader) value(f field, what string, to *[]Value) error {
	if len(*to) >= maxValues {
		return fmt.Errorf("more than %d %ss", maxValues, what)
	}
	var info pb.ValueInfoProto
	if err := r.w.message(f, &info); err != nil {
		return fmt.Errorf("%s %d: %w", what, len(*to), err)
	}
	v := Value{Name: info.Name}
	if v.Name == "" {
		return fmt.Errorf("%s %d has no name", what, len(*to))
	}
	t := info.GetType().GetTensorType()
	if v.DType = DType(t.GetElemType()); !slices.Contains(DTypes(), v.DType) {
		v.Foreign = typeName(info.GetType(), "", 0)
	}
	if s := t.GetShape(); s != nil {
		if len(s.Dim) > maxRank {
			return fmt.Errorf("%s %q has %d dimensions, more than %d", what, v.Name, len(s.Dim), maxRank)
		}
		v.Ranked = true
		v.Shape, v.Symbols = make([]int64, len(s.Dim)), make([]string, len(s.Dim))
		for i, d := range s.Dim {
			v.Shape[i], v.Symbols[i] = Symbolic, d.GetDimParam()
			if n, ok := d.Value.(*pb.TensorShapeProto_Dimension_DimValue); ok && n.DimValue >= 0 {
				v.Shape[i] = n.DimValue
			}
		}
	}
	*to = append(*to, v)
	return nil
}

// message decodes a small message whole.
func (w *window) message(f field, m proto.Message) error {
	if f.end-f.start > maxValueSize {
		return fmt.Errorf("%d bytes long, more than %d", f.end-f.start, maxValueSize)
	}
	b := make([]byte, f.end-f.start)
	if _, err := io.ReadFull(io.NewSectionReader(w.src, f.start, f.end-f.start), b); err != nil {
		return err
	}
	return proto.Unmarshal(b, m)
}

func (w *window) text(f field, to *string) error {
	if f.end-f.start > maxNameSize {
		return fmt.Errorf("a name of %d bytes, more than %d", f.end-f.start, maxNameSize)
	}
	b := make([]byte, f.end-f.start)
	if _, err := io.ReadFull(io.NewSectionReader(w.src, f.start, f.end-f.start), b); err != nil {
		return err
	}
	*to = string(b)
	return nil
}
