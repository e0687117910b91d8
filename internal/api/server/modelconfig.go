package server

import (
	"slices"

	"google.golang.org/protobuf/proto"

	triton "github.com/sluice-serving/sluice/internal/models/repository/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// config is the model's configuration as clients see it: that of its config.pbtxt, where it has one, completed by what
// the model is served as.
func (m *Model) config() *triton.ModelConfig {
	c := &triton.ModelConfig{}
	if m.Config != nil {
		c = proto.CloneOf(m.Config)
	}
	c.Name, c.Platform, c.Backend = m.Name, m.Platform, m.backend()
	if c.VersionPolicy == nil {
		c.VersionPolicy = &triton.ModelVersionPolicy{PolicyChoice: &triton.ModelVersionPolicy_Latest_{
			Latest: &triton.ModelVersionPolicy_Latest{NumVersions: 1},
		}}
	}
	most := int32(0)
	if m.shownBatched() {
		most = int32(m.MaxBatch)
	}
	c.MaxBatchSize = &most
	inputs, outputs := c.Input, c.Output
	c.Input, c.Output = nil, nil
	for _, s := range m.Inputs {
		in := &triton.ModelInput{Name: s.Name}
		if k := slices.IndexFunc(inputs, func(x *triton.ModelInput) bool { return x.Name == s.Name }); k >= 0 {
			in = inputs[k]
		}
		in.DataType, in.Dims = tritonType(s.DType), m.item(s.Shape)
		c.Input = append(c.Input, in)
	}
	for _, s := range m.Outputs {
		out := &triton.ModelOutput{Name: s.Name}
		if k := slices.IndexFunc(outputs, func(x *triton.ModelOutput) bool { return x.Name == s.Name }); k >= 0 {
			out = outputs[k]
		}
		out.DataType, out.Dims = tritonType(s.DType), m.item(s.Shape)
		c.Output = append(c.Output, out)
	}
	return c
}

// tritonType returns the type's name in Triton's model configuration.
func tritonType(d tensor.DType) triton.DataType {
	if d == tensor.Bytes {
		return triton.DataType_TYPE_STRING
	}
	return triton.DataType(triton.DataType_value["TYPE_"+d.String()])
}

// item returns a shape without the batch dimension, as in model configurations.
func (m *Model) item(shape []int64) []int64 {
	if m.shownBatched() && len(shape) > 0 {
		return shape[1:]
	}
	return shape
}
