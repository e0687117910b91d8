//go:build cgo

package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
	"github.com/sluice-serving/sluice/internal/runtime/native"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// needRuntime skips a test on a machine without the library, and says how to get it.
func needRuntime(t testing.TB) {
	t.Helper()
	if _, err := native.ONNXRuntime(); err != nil {
		if os.Getenv(native.EnvONNXRuntime) != "" || !errors.Is(err, native.ErrMissing) {
			t.Fatal(err)
		}
		t.Skipf("not run without ONNX Runtime: %v", err)
	}
}

// write stores a graph as a model file.
func write(t testing.TB, g *onnxmodel.Graph) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := g.Write(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// launch brings up one instance of the models, numbered from 0.
func launch(t testing.TB, limit, slots int, models ...Model) *instance {
	t.Helper()
	r, err := tryLaunch(t, limit, slots, models...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r.(*instance)
}

func tryLaunch(t testing.TB, limit, slots int, models ...Model) (dataplane.Runner, error) {
	t.Helper()
	needRuntime(t)
	cfg := Config{Models: map[serving.VariantID]Model{}}
	spec := dataplane.InstanceSpec{ID: 1, BatchLimit: limit, Slots: slots, Cores: 1}
	for i, m := range models {
		cfg.Models[serving.VariantID(i)] = m
		spec.Variants = append(spec.Variants, serving.VariantID(i))
	}
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b.Launch(t.Context(), spec)
}

// floats makes an FP32 tensor.
func floats(name string, shape []int64, vals ...float32) tensor.Tensor {
	t := tensor.Tensor{Name: name, DType: tensor.FP32, Shape: shape}
	for _, v := range vals {
		t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(v))
	}
	return t
}

// sample makes a tensor whose bytes depend on its elements' places and on salt.
func sample(name string, d tensor.DType, salt int, shape ...int64) tensor.Tensor {
	t := tensor.Tensor{Name: name, DType: d, Shape: shape}
	n, err := tensor.Elements(shape, 1<<24)
	if err != nil {
		panic(err)
	}
	for i := range int(n) {
		switch d {
		case tensor.Bytes:
			e := fmt.Sprintf("ü%d-%d", salt, i)
			if i%3 == 1 {
				e = ""
			}
			t.Data = tensor.AppendBytes(t.Data, []byte(e))
		case tensor.Bool:
			t.Data = append(t.Data, byte((i+salt)%2))
		default:
			for b := range d.Size() {
				t.Data = append(t.Data, byte(i*7+b*13+salt)&0x3f) // no NaN: a copy of one may differ in its bits
			}
		}
	}
	return t
}

// one makes a batch from the inputs of several queries with one input each.
func one(v serving.VariantID, inputs ...tensor.Tensor) *dataplane.Batch {
	b := &dataplane.Batch{ID: 1, Variant: v}
	for i, t := range inputs {
		items := int(t.Shape[0])
		b.Items += items
		b.Portions = append(b.Portions, dataplane.Portion{
			Query: serving.QueryID(i + 1), Items: items, Inputs: []tensor.Tensor{t},
		})
	}
	return b
}
