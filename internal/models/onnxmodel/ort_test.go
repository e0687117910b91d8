package onnxmodel

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	ort "github.com/yalue/onnxruntime_go"
)

// startRuntime loads ONNX Runtime, or skips the test where it is not installed.
func startRuntime(t *testing.T) {
	t.Helper()
	lib := os.Getenv("SLUICE_ONNXRUNTIME")
	if lib == "" {
		lib = filepath.Join("..", "node_modules", "onnxruntime-node", "bin", "napi-v6", "linux", "x64",
			"libonnxruntime.so.1")
	}
	if _, err := os.Stat(lib); err != nil {
		t.Skipf("ONNX Runtime is not installed (%v): run npm ci --ignore-scripts, or set SLUICE_ONNXRUNTIME to the "+
			"library", err)
	}
	ort.SetSharedLibraryPath(lib)
	if err := ort.InitializeEnvironment(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ort.DestroyEnvironment() })
}

func TestRuntimeRunsIdentityOfEveryType(t *testing.T) {
	startRuntime(t)
	for _, d := range DTypes() {
		t.Run(d.String(), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "model.onnx")
			if err := Identity(d, Symbolic, 4).Write(path); err != nil {
				t.Fatal(err)
			}
			s, err := ort.NewDynamicAdvancedSession(path, []string{"input"}, []string{"output"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Destroy() }()
			shape := ort.NewShape(3, 4)
			if d == String {
				runStrings(t, s, shape)
				return
			}
			give, got := make([]byte, 12*d.Size()), make([]byte, 12*d.Size())
			for i := range give {
				give[i] = byte(i) % 2
			}
			in, err := ort.NewCustomDataTensor(shape, give, ort.TensorElementDataType(d))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = in.Destroy() }()
			out, err := ort.NewCustomDataTensor(shape, got, ort.TensorElementDataType(d))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = out.Destroy() }()
			if err := s.Run([]ort.Value{in}, []ort.Value{out}); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(give, got) {
				t.Errorf("gave %v, got %v", give, got)
			}
		})
	}
}

func runStrings(t *testing.T, s *ort.DynamicAdvancedSession, shape ort.Shape) {
	in, err := ort.NewStringTensor(shape)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Destroy() }()
	if err := in.SetElement(5, "größer"); err != nil {
		t.Fatal(err)
	}
	out, err := ort.NewStringTensor(shape)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Destroy() }()
	if err := s.Run([]ort.Value{in}, []ort.Value{out}); err != nil {
		t.Fatal(err)
	}
	got, err := out.GetElement(5)
	if err != nil || got != "größer" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestRuntimeAdds(t *testing.T) {
	startRuntime(t)
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := Add(Int64, Symbolic).Write(path); err != nil {
		t.Fatal(err)
	}
	s, err := ort.NewDynamicAdvancedSession(path, []string{"a", "b"}, []string{"sum"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Destroy() }()
	a, err := ort.NewTensor(ort.NewShape(2), []int64{1, -7})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Destroy() }()
	out := []ort.Value{nil}
	if err := s.Run([]ort.Value{a, a}, out); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out[0].Destroy() }()
	if got := out[0].(*ort.Tensor[int64]).GetData(); len(got) != 2 || got[0] != 2 || got[1] != -14 {
		t.Errorf("got %v", got)
	}
}
