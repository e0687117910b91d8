package onnxmodel

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"
)

// Write checks the graph and writes it as a model file with the default operator set, making the folders above it.
func (g *Graph) Write(path string) error {
	if err := g.Check(); err != nil {
		return err
	}
	return Write(path, g.Model(DefaultOpset, DefaultIR))
}

// Write writes a model file, making the folders above it. The same message gives the same bytes, and a reader never
// sees half a file. A file that has these bytes is left as it is.
func Write(path string, m *pb.ModelProto) error {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return fmt.Errorf("write model %s: encode: %w", path, err)
	}
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write model %s: %w", path, err)
	}
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write model %s: %w", path, err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Chmod(0o644)
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write model %s: %w", path, err)
	}
	return nil
}
