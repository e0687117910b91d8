package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/models/repository"
	"github.com/sluice-serving/sluice/internal/runtime/onnx"
	"github.com/sluice-serving/sluice/internal/runtime/python"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Platforms as Triton names them.
const (
	onnxPlatform   = "onnxruntime_onnx"
	pythonPlatform = "python"
)

// pythonFile is the file of a version that is a model in Python.
const pythonFile = "model.py"

// defaultWarm is the largest batch that is warmed up where neither the load nor the model bounds it.
const defaultWarm = 8

// open loads a model of the repository, which is fetched first if it is not there, or of the folder sent, unless that
// is "". The model removes that folder when it is closed.
func (n *Node) open(ctx context.Context, name, sent string, want settings) (*model, error) {
	m := &model{free: make(chan dataplane.Runner, mostSlots), seen: &server.Model{Name: name}, sent: sent}
	from := sent
	if from == "" {
		from = n.c.Repository
		if err := n.fetch(ctx, name, want); err != nil {
			return nil, err
		}
	}
	var backend dataplane.Backend
	var err error
	if n.c.Fake != nil {
		backend = n.c.Fake
		v := n.number(m, 1)
		m.seen.Versions = []server.Version{{Variant: v, Name: name, Version: "1"}}
		m.seen.Platform, m.seen.Batched, m.seen.MaxBatch = "fake", true, mostBatch
	} else if path, version := pythonSource(filepath.Join(from, name)); path != "" {
		if sent != "" {
			path = python.Stored(path, want.class)
		}
		backend, err = n.openPython(ctx, m, path, version)
	} else {
		backend, err = n.openONNX(m, from)
	}
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	m.launch = n.launcher(backend, m)
	if want.batch > m.seen.MaxBatch && m.seen.Batched && m.seen.Config.GetMaxBatchSize() == 0 {
		m.seen.MaxBatch = want.batch
	}
	if err := m.widen(ctx, want); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// number gives a model an identifier and so many variants, at least 1. It returns the first of them. No other model has
// any of these, also of those that are opened beside it.
func (n *Node) number(m *model, variants int) serving.VariantID {
	n.mu.Lock()
	first := n.last + 1
	n.last += serving.VariantID(variants)
	n.mu.Unlock()
	m.seen.App = serving.AppID(first)
	for k := range variants {
		m.variants = append(m.variants, first+serving.VariantID(k))
	}
	return first
}

// launcher returns what makes one more runner of a model.
func (n *Node) launcher(backend dataplane.Backend, m *model) func(context.Context, settings) (dataplane.Runner, error) {
	return func(ctx context.Context, want settings) (dataplane.Runner, error) {
		warm, cores := want.batch, want.cores
		if warm == 0 {
			warm = defaultWarm
		}
		if cores == 0 {
			cores = n.c.Cores
		}
		return backend.Launch(ctx, dataplane.InstanceSpec{
			ID: serving.InstanceID(m.seen.App), Variants: m.variants, BatchLimit: min(warm, max(m.seen.MaxBatch, 1)),
			Slots: 1, Cores: cores,
		})
	}
}

// fetch puts a model into the repository if it is not there.
func (n *Node) fetch(ctx context.Context, name string, want settings) error {
	folder := filepath.Join(n.c.Repository, name)
	if n.c.Fake != nil {
		return nil
	}
	if _, err := os.Stat(folder); err == nil || n.c.Fetch == nil && want.uri == "" {
		return nil
	}
	if n.c.Fetch == nil {
		return oip.Errorf(oip.NotFound, "", "it is not in the repository, and this node fetches none")
	}
	if err := n.c.Fetch(ctx, want.uri, want.digest, folder); err != nil {
		return oip.Errorf(oip.Unavailable, "", "it is not in the repository, and cannot be fetched: %v", err)
	}
	return nil
}

// openONNX describes a model of ONNX files and binds each of its versions to a variant.
func (n *Node) openONNX(m *model, from string) (dataplane.Backend, error) {
	repo, err := repository.Open(from)
	if err != nil {
		return nil, err
	}
	defer func() { _ = repo.Close() }()
	x, err := repo.Model(m.seen.Name)
	if errors.Is(err, repository.ErrNotFound) {
		return nil, oip.Errorf(oip.NotFound, "", "%v", err)
	}
	if err != nil {
		return nil, err
	}
	if x.Sequence != nil {
		return nil, oip.Errorf(oip.Unsupported, "", "it keeps something from query to query of a sequence, which "+
			"models on nodes cannot yet")
	}
	backend, err := n.onnxBackend()
	if err != nil {
		return nil, err
	}
	n.number(m, len(x.Versions))
	for k, id := range m.variants { // the highest answers who names none
		v := &x.Versions[len(x.Versions)-1-k]
		backend.Bind(id, onnx.Described(v.Path, x))
		m.seen.Versions = append(m.seen.Versions, server.Version{
			Variant: id, Name: m.seen.Name, Version: strconv.FormatInt(v.Number, 10),
		})
	}
	m.seen.Platform, m.seen.Inputs, m.seen.Outputs = onnxPlatform, x.Inputs, x.Outputs
	m.seen.Batched, m.seen.MaxBatch = x.MaxBatch > 0, max(x.MaxBatch, 1)
	m.seen.Config, m.seen.Labels = x.Config, x.Labels
	return backend, nil
}

// onnxBackend loads ONNX Runtime when the first model needs it.
func (n *Node) onnxBackend() (*onnx.Backend, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.onnx != nil {
		return n.onnx, nil
	}
	b, err := onnx.New(onnx.Config{
		Device: func(serving.WorkerID) onnx.Device { return n.c.Device },
		Tell:   func(err error) { n.log.Warn("trouble", "error", err) },
	})
	if err != nil {
		return nil, err
	}
	n.onnx = b
	return b, nil
}

// pythonSource returns the file and the version of the model in a folder, or nothing if it is not in Python.
func pythonSource(folder string) (path, version string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", ""
	}
	highest := int64(-1)
	for _, e := range entries {
		number, err := strconv.ParseInt(e.Name(), 10, 64)
		if err != nil || !e.IsDir() || number <= highest {
			continue
		}
		at := filepath.Join(folder, e.Name(), pythonFile)
		if st, err := os.Stat(at); err == nil && st.Mode().IsRegular() {
			highest, path, version = number, at, e.Name()
		}
	}
	return path, version
}

// openPython asks a model in Python what it is and binds it to a variant.
func (n *Node) openPython(ctx context.Context, m *model, source, version string) (dataplane.Backend, error) {
	v := n.number(m, 1)
	n.python.Bind(v, python.Model{Name: m.seen.Name, Source: source})
	x, err := n.python.Interface(ctx, v)
	if err != nil {
		n.python.Unbind(v)
		return nil, err
	}
	if x.Inputs == nil {
		return nil, fmt.Errorf("%s does not say what its inputs are: give the class an attribute inputs", source)
	}
	m.seen.Versions = []server.Version{{Variant: v, Name: m.seen.Name, Version: version}}
	m.seen.Platform, m.seen.Inputs, m.seen.Outputs = pythonPlatform, x.Inputs, x.Outputs
	m.seen.Batched, m.seen.MaxBatch = x.Batched, max(x.MaxBatch, 1)
	return n.python, nil
}

// partials hands on the answers of a model that gives any number of them.
func partials(q *dataplane.Request) func([]tensor.Tensor) error {
	return func(outputs []tensor.Tensor) error {
		q.Partial(outputs)
		return nil
	}
}
