//go:build cgo

package onnx

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/models/repository"
	"github.com/sluice-serving/sluice/tensor"
)

// maxTensorBytes bounds the bytes of one tensor of a batch, so that a wrong shape cannot exhaust the memory.
const maxTensorBytes = 1 << 32

// model is the description of a model file.
type model struct {
	path            string
	inputs, outputs []port
	optional        []port // inputs for which the file has a constant; they belong to a run, not to its items
	batched         bool   // the first dimension of every tensor counts items
	memory          int64  // Config.Memory
	rows            int    // Model.Rows
	asIs            bool   // without optimisation
	example         func(items int) []tensor.Tensor
	reshapes, seen  map[string][]int64 // by tensor that clients see in another shape: the model's own, and theirs
	sequence        *repository.Sequence
	padding         *padding    // of queries of different lengths; nil for none
	mask            string      // Model.Mask
	tell            func(error) // Config.Tell
}

// port is one input or output.
type port struct {
	tensor.Spec
	ort ort.TensorElementDataType
	// rowBytes is the size of one item (of the whole tensor, if the model is not batched), or -1 when it varies with
	// the shape or the elements.
	rowBytes int64
	input    int // of an output: the input that it is; -1 for none
}

// readModel reads the inputs and outputs of a model through the runtime, and applies the configuration to them.
func readModel(cfg Model) (*model, error) {
	// The graph is optimised only in the sessions that will run it.
	opts, err := ort.NewSessionOptions()
	if err != nil {
		return nil, fmt.Errorf("onnx: model %s: %w", cfg.Path, err)
	}
	defer func() { _ = opts.Destroy() }()
	if err := opts.SetGraphOptimizationLevel(ort.GraphOptimizationLevelDisableAll); err != nil {
		return nil, fmt.Errorf("onnx: model %s: %w", cfg.Path, err)
	}
	in, out, err := ort.GetInputOutputInfoWithOptions(cfg.Path, opts)
	if err != nil {
		return nil, fmt.Errorf("onnx: model %s: %w", cfg.Path, err)
	}
	m := &model{
		path: cfg.Path, rows: cfg.Rows, example: cfg.Example, asIs: cfg.AsIs, sequence: cfg.Sequence,
		mask:     cmp.Or(cfg.Mask, repository.MaskName),
		reshapes: make(map[string][]int64), seen: make(map[string][]int64),
	}
	for name, r := range cfg.Reshapes {
		m.reshapes[name], m.seen[name] = r.Own, r.Seen
	}
	file, err := onnxmodel.Read(cfg.Path)
	if err != nil {
		file = &onnxmodel.Info{} // a format that only the runtime reads
	}
	m.optional = optionalPorts(file)
	unknown := unranked(file)
	if m.inputs, err = ports("input", in, cfg.Inputs, unknown, cfg.Shapes); err != nil {
		return nil, fmt.Errorf("onnx: model %s: %w", cfg.Path, err)
	}
	if m.outputs, err = ports("output", out, cfg.Outputs, unknown, cfg.Shapes); err != nil {
		return nil, fmt.Errorf("onnx: model %s: %w", cfg.Path, err)
	}
	if len(m.outputs) == 0 {
		return nil, fmt.Errorf("onnx: model %s: has no outputs", cfg.Path)
	}
	open := func(p port) bool { return len(p.Shape) > 0 && p.Shape[0] == -1 }
	m.batched = !cfg.NoBatch && len(m.inputs) > 0 &&
		!slices.ContainsFunc(slices.Concat(m.inputs, m.outputs), func(p port) bool { return !open(p) })
	for _, ps := range [][]port{m.inputs, m.outputs} {
		for i := range ps {
			ps[i].rowBytes = rowBytes(&ps[i].Spec, m.batched)
			ps[i].input = slices.IndexFunc(m.inputs, func(p port) bool { return p.Name == ps[i].Name })
		}
	}
	m.padding = newPadding(m, file)
	return m, nil
}

// unranked returns the tensors of which the file does not say how many dimensions they have. The runtime describes them
// like scalars.
func unranked(file *onnxmodel.Info) map[string]bool {
	out := make(map[string]bool)
	for _, v := range slices.Concat(file.Inputs, file.Outputs) {
		if !v.Ranked {
			out[v.Name] = true
		}
	}
	return out
}

// optionalPorts are the optional inputs that the protocol can carry.
func optionalPorts(file *onnxmodel.Info) (out []port) {
	for _, v := range file.Optional {
		if d := tensor.ParseDType(v.DType.String()); d != tensor.Invalid {
			out = append(out, port{Spec: tensor.Spec{Name: v.Name, DType: d, Shape: v.Shape},
				ort: ort.TensorElementDataType(v.DType)})
		}
	}
	return out
}

// optionalAt is the place of an optional input, -1 where there is none of that name.
func (m *model) optionalAt(name string) int {
	return slices.IndexFunc(m.optional, func(p port) bool { return p.Name == name })
}

// ports converts the runtime's description of inputs or outputs and applies the configuration to it. The shape of a
// tensor is nil where nobody knows how many dimensions it has.
func ports(what string, infos []ort.InputOutputInfo, override []tensor.Spec, unknown map[string]bool,
	known map[string][]int64) ([]port, error) {
	ps := make([]port, len(infos))
	for i, info := range infos {
		if info.OrtValueType != ort.ONNXTypeTensor {
			return nil, fmt.Errorf("%s %q is a %s: only tensors can be served", what, info.Name, info.OrtValueType)
		}
		d := fromORT(info.DataType)
		if d == tensor.Invalid {
			return nil, fmt.Errorf("%s %q has elements of type %s, which the protocol cannot carry", what, info.Name,
				info.DataType)
		}
		shape := append([]int64{}, info.Dimensions...)
		if len(shape) == 0 && unknown[info.Name] { // the runtime infers the shapes of some
			shape = slices.Clone(known[info.Name])
		}
		ps[i] = port{Spec: tensor.Spec{Name: info.Name, DType: d, Shape: shape}, ort: info.DataType}
	}
	for _, o := range override {
		at := slices.IndexFunc(ps, func(p port) bool { return p.Name == o.Name })
		if at < 0 {
			return nil, fmt.Errorf("%s %q is configured, but the model has no such %s", what, o.Name, what)
		}
		if err := ps[at].narrow(o); err != nil {
			return nil, fmt.Errorf("%s %q: %w", what, o.Name, err)
		}
	}
	return ps, nil
}

// narrow fixes variable dimensions. An empty shape or datatype keeps the file's.
func (p *port) narrow(o tensor.Spec) error {
	if o.DType != tensor.Invalid && o.DType != p.DType {
		return fmt.Errorf("configured as %s, but the model has %s", o.DType, p.DType)
	}
	if len(o.Shape) == 0 {
		return nil
	}
	if p.Shape == nil {
		p.Shape = slices.Clone(o.Shape)
		return nil
	}
	if len(o.Shape) != len(p.Shape) {
		return fmt.Errorf("configured with shape %v, but the model has %v", o.Shape, p.Shape)
	}
	for i, d := range o.Shape {
		switch {
		case d < -1, d >= 0 && p.Shape[i] >= 0 && d != p.Shape[i]:
			return fmt.Errorf("configured with shape %v, but the model has %v", o.Shape, p.Shape)
		case d >= 0:
			p.Shape[i] = d
		}
	}
	return nil
}

func rowBytes(s *tensor.Spec, batched bool) int64 {
	shape := s.Shape
	if batched {
		shape = shape[1:]
	}
	if shape == nil || s.DType == tensor.Bytes || slices.Contains(shape, -1) {
		return -1
	}
	n, err := tensor.Elements(shape, math.MaxInt64/8)
	if err != nil || n*int64(s.DType.Size()) > maxTensorBytes {
		return -1
	}
	return n * int64(s.DType.Size())
}

// exampleInputs returns inputs for warming the model up.
func (m *model) exampleInputs(items int) ([]tensor.Tensor, error) {
	var given []tensor.Tensor
	if m.example != nil {
		given = m.example(items)
	}
	out := make([]tensor.Tensor, len(m.inputs))
	for i := range m.inputs {
		k := slices.IndexFunc(given, func(t tensor.Tensor) bool { return t.Name == m.inputs[i].Name })
		if k >= 0 {
			out[i] = given[k]
			if own, ok := m.reshapes[out[i].Name]; ok && !m.fits(out[i].Name, out[i].Shape) {
				shape, err := m.reshaped(&out[i], own)
				if err != nil {
					return nil, fmt.Errorf("input %q: %w", out[i].Name, err)
				}
				out[i].Shape = shape
			}
			continue
		}
		if m.example != nil && (m.sequence == nil || !m.sequence.Hides(m.inputs[i].Name)) {
			return nil, fmt.Errorf("example of %d items: input %q is missing", items, m.inputs[i].Name)
		}
		shape := slices.Clone(m.inputs[i].Shape)
		for k, d := range shape {
			if d < 0 {
				shape[k] = 1
			}
		}
		if m.batched {
			shape[0] = int64(items)
		}
		element := make([]byte, m.inputs[i].DType.Size())
		if m.inputs[i].DType == tensor.Bytes {
			element = tensor.AppendBytes(nil, []byte("0")) // a text, and a number for models that read numbers
		}
		n, err := tensor.Elements(shape, maxTensorBytes/int64(len(element)))
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", m.inputs[i].Name, err)
		}
		out[i] = tensor.Tensor{
			Name: m.inputs[i].Name, DType: m.inputs[i].DType, Shape: shape, Data: bytes.Repeat(element, int(n)),
		}
	}
	return out, nil
}

func specs(ps []port) []tensor.Spec {
	out := make([]tensor.Spec, len(ps))
	for i, p := range ps {
		out[i] = p.Spec
		out[i].Shape = slices.Clone(p.Shape)
	}
	return out
}

func names(ps []port) []string {
	out := make([]string, len(ps))
	for i, p := range ps {
		out[i] = p.Name
	}
	return out
}

var errClosed = errors.New("closed")
