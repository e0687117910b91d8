package onnxmodel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
)

// TestLoad reads what was written, weights included, and says what is wrong with other files.
func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.onnx")
	g := NewGraph("g").Input("x", Float32, -1, 2).Initializer("w", []float32{1, 2}, 2).
		Node("Add", []string{"x", "w"}, []string{"y"}).Output("y", Float32, -1, 2)
	if err := g.Write(path); err != nil {
		t.Fatal(err)
	}
	m, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := g.Model(DefaultOpset, DefaultIR); !proto.Equal(m, want) {
		t.Errorf("read %v, want %v", m, want)
	}
	other := filepath.Join(t.TempDir(), "other.onnx")
	for text, say := range map[string]string{"\xff\xff": "other.onnx", "": "no graph"} {
		if err := os.WriteFile(other, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(other); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%q: error is %v, want one that says %q", text, err, say)
		}
	}
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("a folder was read as a model")
	}
}
