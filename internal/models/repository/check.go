package repository

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/sluice-serving/sluice/internal/models/repository/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// checkConfig returns the errors that make the configuration unusable, and adds warnings for settings that have no
// effect here.
func (m *Model) checkConfig() error {
	c := m.Config
	if c.Name != "" && c.Name != m.Name {
		return fmt.Errorf("name is %q, but the directory is %q: make them equal or leave name out", c.Name, m.Name)
	}
	if c.MaxBatchSize != nil && (*c.MaxBatchSize < 0 || *c.MaxBatchSize > MaxMaxBatch) {
		return fmt.Errorf("max_batch_size is %d, want 0 to %d", *c.MaxBatchSize, MaxMaxBatch)
	}
	if f := c.DefaultModelFilename; f != "" && (path.Base(f) != f || f == "." || f == ".." ||
		strings.ContainsAny(f, "\\\x00")) {
		return fmt.Errorf("default_model_filename is %q, want a plain file name", f)
	}
	if c.Platform != "" && c.Platform != "onnxruntime_onnx" && c.Platform != "ensemble" {
		m.warnf("platform is %q: only ONNX models can be run in process", c.Platform)
	}
	if c.Backend != "" && c.Backend != "onnxruntime" {
		m.warnf("backend is %q: only ONNX models can be run in process", c.Backend)
	}
	for i, g := range c.InstanceGroup {
		if g.Count < 0 {
			return fmt.Errorf("instance_group[%d].count is %d, want at least 0", i, g.Count)
		}
	}
	if len(c.InstanceGroup) > 0 {
		m.warnf("instance_group is not applied: the plan, or placement in sluice.yaml, decides how many instances " +
			"run where")
	}
	if len(c.Parameters) > 0 {
		m.warnf("parameters %q are shown to clients and have no other effect here",
			slices.Sorted(maps.Keys(c.Parameters)))
	}
	if d := c.DynamicBatching; d != nil {
		for i, n := range d.PreferredBatchSize {
			if n < 1 || c.MaxBatchSize != nil && n > *c.MaxBatchSize {
				return fmt.Errorf("dynamic_batching.preferred_batch_size[%d] is %d, want 1 to max_batch_size", i, n)
			}
		}
		if d.DefaultPriorityLevel > d.PriorityLevels {
			return fmt.Errorf("dynamic_batching.default_priority_level is %d, more than priority_levels %d",
				d.DefaultPriorityLevel, d.PriorityLevels)
		}
	}
	for i, in := range c.Input {
		if err := checkIO("input", i, in.Name, in.DataType, in.Dims, in.Reshape); err != nil {
			return err
		}
		if in.AllowRaggedBatch {
			m.warnf("input %q: allow_ragged_batch is not applied: queries of one batch must have equal shapes", in.Name)
		}
	}
	for i, out := range c.Output {
		if err := checkIO("output", i, out.Name, out.DataType, out.Dims, out.Reshape); err != nil {
			return err
		}
	}
	return nil
}

func checkIO(kind string, i int, name string, t pb.DataType, dims []int64, reshape *pb.ModelTensorReshape) error {
	if name == "" {
		return fmt.Errorf("%s[%d] has no name", kind, i)
	}
	if t == pb.DataType_TYPE_INVALID {
		return fmt.Errorf("%s %q has no data_type", kind, name)
	}
	if len(dims) == 0 && reshape == nil {
		return fmt.Errorf("%s %q has no dims", kind, name)
	}
	if reshape != nil {
		if err := checkReshape(dims, reshape.Shape); err != nil {
			return fmt.Errorf("%s %q: %w", kind, name, err)
		}
	}
	for j, d := range dims {
		if d < -1 || d == 0 {
			return fmt.Errorf("%s %q: dims[%d] is %d, want -1 or at least 1", kind, name, j, d)
		}
	}
	return nil
}

// checkReshape returns an error unless every tensor of the one shape is one of the other, too.
func checkReshape(dims, shape []int64) error {
	count := func(list []int64) (fixed int64, open int) {
		fixed = 1
		for _, d := range list {
			if d < 0 {
				open++
			} else {
				fixed *= d
			}
		}
		return fixed, open
	}
	a, openA := count(dims)
	b, openB := count(shape)
	if openA != openB || openA > 1 || a != b {
		return fmt.Errorf("reshape to %v: dims are %v, which have another number of elements, or more than one "+
			"variable dimension", tensor.Dims(shape), tensor.Dims(dims))
	}
	return nil
}
