package repository

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/models/repository/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// describe fills Inputs, Outputs and MaxBatch from the configuration and the model file of the highest version.
func (m *Model) describe(r *Repository) error {
	c := m.Config
	info, err := onnxmodel.Read(m.Latest().Path)
	if err != nil {
		if len(c.Input) == 0 || len(c.Output) == 0 {
			return err
		}
		// The configuration is complete, and the model may be meant for a remote server.
		m.warnf("the model file could not be read: %v", err)
		m.MaxBatch = int(c.GetMaxBatchSize())
		m.Inputs, m.Outputs = m.configured()
		return nil
	}
	fileIn, err := specs("input", info.Inputs)
	if err != nil {
		return err
	}
	fileOut, err := specs("output", info.Outputs)
	if err != nil {
		return err
	}
	for _, v := range info.Optional {
		if t := tensor.ParseDType(v.DType.String()); t != tensor.Invalid {
			m.Optional = append(m.Optional, tensor.Spec{Name: v.Name, DType: t, Shape: v.Shape})
		}
	}
	m.warnOptional()
	m.MaxBatch = m.maxBatch(fileIn, fileOut)
	if fileIn, fileOut, err = m.splitSequence(r, fileIn, fileOut); err != nil {
		return err
	}
	in, out := m.configured()
	m.Reshapes = m.reshapes()
	if err := m.checkBatched(slices.Concat(fileIn, chosen(fileOut, out))); err != nil {
		return err
	}
	if m.Inputs, err = m.merge("input", in, fileIn); err != nil {
		return err
	}
	if m.Outputs, err = m.merge("output", out, fileOut); err != nil {
		return err
	}
	if m.Sequence == nil {
		m.Length = lengthOf(m.Inputs, info.Inputs, m.MaxBatch > 0)
	}
	return nil
}

// checkBatched returns an error for a tensor of the model file that cannot hold the items of a batch.
func (m *Model) checkBatched(file []tensor.Spec) error {
	if m.MaxBatch == 0 {
		return nil
	}
	for _, s := range file {
		if s.Shape != nil && (len(s.Shape) == 0 || s.Shape[0] != -1) {
			return fmt.Errorf("%s: max_batch_size is %d, but %q has the shape %v in the model file, and a batch needs "+
				"-1 as its first dimension: set max_batch_size to 0, with dims that are the whole shapes, or export "+
				"the model with a variable first dimension", configFile, m.MaxBatch, s.Name, tensor.Dims(s.Shape))
		}
	}
	return nil
}

// chosen returns the tensors of a file that a configuration lists, all where it lists none.
func chosen(file, configured []tensor.Spec) []tensor.Spec {
	if len(configured) == 0 {
		return file
	}
	return slices.DeleteFunc(slices.Clone(file), func(f tensor.Spec) bool {
		return !slices.ContainsFunc(configured, func(c tensor.Spec) bool { return c.Name == f.Name })
	})
}

// maxBatch takes the configured bound; without one, a model whose tensors all begin with a variable dimension can
// batch.
func (m *Model) maxBatch(in, out []tensor.Spec) int {
	if m.Config.MaxBatchSize != nil {
		return int(*m.Config.MaxBatchSize)
	}
	if len(in) == 0 || m.wholeShapes(in) {
		return 0
	}
	for _, s := range slices.Concat(in, out) {
		if len(s.Shape) == 0 || s.Shape[0] != -1 {
			return 0
		}
	}
	return DefaultMaxBatch
}

// wholeShapes reports whether the configured inputs have as many dimensions as the file's. In config.pbtxt, dims leave
// out the batch dimension, so equal numbers mean that there is none.
func (m *Model) wholeShapes(file []tensor.Spec) bool {
	for _, c := range m.Config.Input {
		for _, f := range file {
			if c.Name == f.Name && f.Shape != nil && len(c.Dims) == len(f.Shape) {
				return true
			}
		}
	}
	return false
}

// configured returns the tensors as config.pbtxt lists them, with the batch dimension in front where there is one, and
// without optional inputs.
func (m *Model) configured() (in, out []tensor.Spec) {
	for _, x := range m.Config.Input {
		if m.isOptional(x.Name) {
			continue
		}
		in = append(in, tensor.Spec{Name: x.Name, DType: dtypes[x.DataType], Shape: m.withBatch(x.Dims)})
	}
	for _, x := range m.Config.Output {
		out = append(out, tensor.Spec{Name: x.Name, DType: dtypes[x.DataType], Shape: m.withBatch(x.Dims)})
	}
	return in, out
}

// withBatch puts the batch dimension in front of a shape of a configuration, where there is one.
func (m *Model) withBatch(dims []int64) []int64 {
	if m.MaxBatch > 0 {
		return append([]int64{-1}, dims...)
	}
	return append([]int64{}, dims...) // never nil, which stands for an unknown shape
}

// reshapes returns the shapes that the model itself has for tensors that clients see in another one.
func (m *Model) reshapes() map[string][]int64 {
	out := make(map[string][]int64)
	for _, x := range m.Config.Input {
		if x.Reshape != nil {
			out[x.Name] = m.withBatch(x.Reshape.Shape)
		}
	}
	for _, x := range m.Config.Output {
		if x.Reshape != nil {
			out[x.Name] = m.withBatch(x.Reshape.Shape)
		}
	}
	return out
}

// merge returns the configured tensors, or those of the file if none are configured. Configured tensors must exist in
// the file. If some inputs are configured, all must be, since all are needed to run a model; outputs may be a
// selection.
func (m *Model) merge(kind string, configured, file []tensor.Spec) ([]tensor.Spec, error) {
	if len(configured) == 0 {
		return file, nil
	}
	seen := map[string]bool{}
	for _, c := range configured {
		if seen[c.Name] {
			return nil, fmt.Errorf("config.pbtxt: %s %q is given twice", kind, c.Name)
		}
		seen[c.Name] = true
		i := slices.IndexFunc(file, func(s tensor.Spec) bool { return s.Name == c.Name })
		if i < 0 {
			return nil, fmt.Errorf("config.pbtxt: %s %q: the model file has no such %s, it has %s", kind, c.Name, kind,
				names(file))
		}
		f := file[i]
		if c.DType != f.DType {
			return nil, fmt.Errorf("config.pbtxt: %s %q: data_type is %s, but the model file says %s", kind, c.Name,
				c.DType, f.DType)
		}
		shape, field := c.Shape, "dims"
		if own, ok := m.Reshapes[c.Name]; ok {
			shape, field = own, "reshape"
		} else if f.Shape != nil && len(f.Shape) == 0 && slices.Equal(shape, []int64{1}) {
			// Configurations write a scalar as one element, since dims cannot be empty.
			shape = []int64{}
			m.Reshapes[c.Name] = shape
		}
		if f.Shape != nil && !fits(shape, f.Shape) {
			return nil, fmt.Errorf("config.pbtxt: %s %q: %s", kind, c.Name, m.misfit(field, shape, f.Shape))
		}
	}
	if kind == "input" {
		for _, f := range file {
			if !seen[f.Name] {
				return nil, fmt.Errorf("config.pbtxt: input %q of the model file is not listed", f.Name)
			}
		}
	}
	return configured, nil
}

// misfit says what is wrong with dims, or with a reshape, that became a shape which is not the file's, and what is
// wanted.
func (m *Model) misfit(field string, shape, file []int64) string {
	if m.MaxBatch == 0 {
		text := fmt.Sprintf("%s: %v, but the model file has the shape %v", field, tensor.Dims(shape), tensor.Dims(file))
		if len(file) > 0 && file[0] == -1 && fits(shape, file[1:]) {
			text += fmt.Sprintf(": without max_batch_size the batch dimension is one of them: write %v, or set "+
				"max_batch_size", tensor.Dims(append([]int64{-1}, shape...)))
		}
		return text
	}
	text := fmt.Sprintf("%s: %v, but the model file has the shape %v for an item of a batch", field,
		tensor.Dims(shape[1:]), tensor.Dims(file[1:]))
	if fits(shape[1:], file) {
		text += fmt.Sprintf(": with max_batch_size %d the batch dimension is none of them: write %v", m.MaxBatch,
			tensor.Dims(shape[2:]))
	}
	return text
}

// fits reports whether some tensor has both shapes, where -1 is any number.
func fits(a, b []int64) bool {
	return slices.EqualFunc(a, b, func(x, y int64) bool { return x == y || x == -1 || y == -1 })
}

func names(specs []tensor.Spec) string {
	var s []string
	for _, x := range specs {
		s = append(s, fmt.Sprintf("%q", x.Name))
	}
	return strings.Join(s, ", ")
}

// specs translates the tensors of a model file. Shape stays nil when the file does not say how many dimensions there
// are.
func specs(kind string, values []onnxmodel.Value) ([]tensor.Spec, error) {
	out := []tensor.Spec{} // never nil, which stands for unknown ones
	for _, v := range values {
		t := tensor.ParseDType(v.DType.String())
		if t == tensor.Invalid {
			return nil, fmt.Errorf("%s %q of the model file is of type %s, which the Open Inference Protocol cannot "+
				"carry: export the model with tensors of numbers or strings", kind, v.Name, v.Foreign)
		}
		out = append(out, tensor.Spec{Name: v.Name, DType: t, Shape: v.Shape})
	}
	return out, nil
}

var dtypes = map[pb.DataType]tensor.DType{
	pb.DataType_TYPE_BOOL: tensor.Bool, pb.DataType_TYPE_UINT8: tensor.Uint8, pb.DataType_TYPE_UINT16: tensor.Uint16,
	pb.DataType_TYPE_UINT32: tensor.Uint32, pb.DataType_TYPE_UINT64: tensor.Uint64, pb.DataType_TYPE_INT8: tensor.Int8,
	pb.DataType_TYPE_INT16: tensor.Int16, pb.DataType_TYPE_INT32: tensor.Int32, pb.DataType_TYPE_INT64: tensor.Int64,
	pb.DataType_TYPE_FP16: tensor.FP16, pb.DataType_TYPE_FP32: tensor.FP32, pb.DataType_TYPE_FP64: tensor.FP64,
	pb.DataType_TYPE_STRING: tensor.Bytes, pb.DataType_TYPE_BF16: tensor.BF16,
}
