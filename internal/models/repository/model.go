package repository

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"

	"github.com/sluice-serving/sluice/internal/models/repository/pb"
	"github.com/sluice-serving/sluice/tensor"
)

const (
	// DefaultMaxBatch is the largest batch of a model that has a batch dimension but whose configuration does not bound
	// it.
	DefaultMaxBatch = 64
	// MaxMaxBatch is the largest bound a configuration may give.
	MaxMaxBatch = 1 << 20

	defaultFile = "model.onnx"
	configFile  = "config.pbtxt"
)

// Version is one version directory that is served.
type Version struct {
	Number int64
	Path   string // of the model file: absolute, without links, inside the repository
	Bytes  int64  // its size
}

// Model is the description of one model in a repository.
type Model struct {
	Name     string
	Versions []Version       // those the version policy chooses, ascending; never empty
	Config   *pb.ModelConfig // never nil; empty when there is no config.pbtxt
	// Inputs and Outputs are what a request carries, from config.pbtxt when it lists them and otherwise from the model
	// file of the highest version. When MaxBatch is not 0 the first dimension is -1 and is the batch dimension. A nil
	// Shape means that the number of dimensions is not known.
	Inputs  []tensor.Spec
	Outputs []tensor.Spec
	// Optional are inputs for which the model file has a constant, which a request may replace for all its items.
	Optional []tensor.Spec
	// Length is what the length of a query is; nil where the model takes one size only, or the file does not tell.
	Length *tensor.Length
	// MaxBatch is the largest number of items of one run, or 0 for a model without a batch dimension.
	MaxBatch int
	// Reshapes are the shapes that the model itself has for tensors that clients see in another one, by name, with the
	// batch dimension.
	Reshapes map[string][]int64
	Sequence *Sequence           // nil for a model that takes every request alone
	Labels   map[string][]string // names of the classes, by output and then by class
	Sample   []tensor.Tensor     // inputs of one item to warm up with, without the batch dimension; nil for zeros
	Found    []tensor.Tensor     // the same of files beside the model, to measure it with where it has no sample
	Unknown  []string            // fields of config.pbtxt that sluice does not read, each with its line
	Warnings []string            // settings of the configuration that sluice does not follow
}

// Latest returns the highest version served.
func (m *Model) Latest() Version { return m.Versions[len(m.Versions)-1] }

// Version returns the version with the given number in decimal, or the highest one for an empty text.
func (m *Model) Version(number string) (Version, error) {
	if number == "" {
		return m.Latest(), nil
	}
	for _, v := range m.Versions {
		if strconv.FormatInt(v.Number, 10) == number {
			return v, nil
		}
	}
	return Version{}, fmt.Errorf("model %q: version %q: %w or not served: there is %s", m.Name, number, ErrNotFound,
		m.numbers())
}

func (m *Model) numbers() string {
	s := ""
	for i, v := range m.Versions {
		if i > 0 {
			s += ", "
		}
		s += strconv.FormatInt(v.Number, 10)
	}
	return s
}

// isOptional reports whether a tensor is an optional input of the model file.
func (m *Model) isOptional(name string) bool {
	return slices.ContainsFunc(m.Optional, func(s tensor.Spec) bool { return s.Name == name })
}

// warnOptional adds a warning for inputs that the configuration calls optional and for which there is no constant.
func (m *Model) warnOptional() {
	for _, in := range m.Config.GetInput() {
		if in.Optional && !m.isOptional(in.Name) {
			m.warnf("input %q: optional is not applied: every request must give it", in.Name)
		}
	}
}

func (m *Model) warnf(format string, args ...any) {
	m.Warnings = append(m.Warnings, fmt.Sprintf(format, args...))
}

// Model reads one model. Errors name the model and the file.
func (r *Repository) Model(name string) (*Model, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	m, err := r.model(name)
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", name, err)
	}
	return m, nil
}

func (r *Repository) model(name string) (*Model, error) {
	st, err := r.root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w in %s", ErrNotFound, r.dir)
	case err != nil:
		return nil, err
	case !st.IsDir():
		return nil, fmt.Errorf("%s is not a directory", path.Join(r.dir, name))
	}
	m := &Model{Name: name}
	if err := r.configure(m); err != nil {
		return nil, err
	}
	if m.Config.MaxBatchSize == nil && r.whole[name] {
		m.Config.MaxBatchSize = new(int32)
	}
	if m.Config.EnsembleScheduling != nil {
		return nil, fmt.Errorf("%s: ensemble_scheduling: this is no model but a graph of models: `sluice import "+
			"triton` makes an app of it", configFile)
	}
	if err := r.findVersions(m); err != nil {
		return nil, err
	}
	if err := m.describe(r); err != nil {
		return nil, err
	}
	r.readLabels(m)
	r.readWarmup(m)
	r.readDataSet(m)
	return m, nil
}

// configure reads and checks config.pbtxt, if there is one.
func (r *Repository) configure(m *Model) error {
	m.Config = &pb.ModelConfig{}
	if c := r.overrides[m.Name]; c != nil {
		m.Config = c
		if err := m.checkConfig(); err != nil {
			return fmt.Errorf("the configuration given: %w", err)
		}
		return nil
	}
	text, err := r.ReadFile(path.Join(m.Name, configFile), MaxConfigBytes)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if err == nil {
		if m.Config, m.Unknown, err = Parse(text); err != nil {
			return fmt.Errorf("%s: %w", configFile, err)
		}
	}
	if err := m.checkConfig(); err != nil {
		return fmt.Errorf("%s: %w", configFile, err)
	}
	return nil
}

// Configured reads a model's config.pbtxt alone. It is for models that other servers run, and for ensembles. It sets
// only Name, Config, Unknown and Warnings of the result, and Labels of an ensemble.
func (r *Repository) Configured(name string) (*Model, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	m := &Model{Name: name}
	st, err := r.root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && !st.IsDir():
		return nil, fmt.Errorf("model %q: %w in %s", name, ErrNotFound, r.dir)
	case err == nil:
		err = r.configure(m)
	}
	m.warnOptional()
	if err == nil && m.Config.EnsembleScheduling != nil {
		r.readLabels(m)
	}
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", name, err)
	}
	return m, nil
}

// DType returns the protocol's element type of one of Triton's; tensor.Invalid when there is none.
func DType(t pb.DataType) tensor.DType { return dtypes[t] }

// findVersions applies the version policy and locates the model file of each version it chooses.
func (r *Repository) findVersions(m *Model) error {
	all, err := r.versions(m.Name)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("no version directory: want %s", path.Join(r.dir, m.Name, "1", defaultFile))
	}
	chosen, err := chooseVersions(all, m.Config.GetVersionPolicy())
	if err != nil {
		return err
	}
	file := m.Config.GetDefaultModelFilename()
	if file == "" {
		file = defaultFile
	}
	for _, n := range chosen {
		at := path.Join(m.Name, strconv.FormatInt(n, 10), file)
		real, size, err := r.file(at)
		if err != nil {
			if errors.Is(err, ErrNotFound) {
				err = fmt.Errorf("%w%s", err, r.beside(at))
			}
			return fmt.Errorf("version %d: %s: %w", n, at, err)
		}
		m.Versions = append(m.Versions, Version{Number: n, Path: real, Bytes: size})
	}
	return nil
}
