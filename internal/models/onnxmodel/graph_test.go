package onnxmodel

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCheckNamesWhatIsWrong(t *testing.T) {
	ok := func() *Graph { return Identity(Float32, 1) }
	for want, g := range map[string]*Graph{
		"name is empty":                Identity(Float32, 1).rename(""),
		"no outputs":                   NewGraph("g").Input("x", Float32, 1),
		"is not made before it":        NewGraph("g").Node("Relu", []string{"x"}, []string{"y"}).Output("y", Float32),
		"made by no node":              ok().Output("z", Float32),
		"declared twice":               ok().Output("output", Float32, 1),
		"already taken":                ok().Input("input", Float32, 1),
		`output of node Relu_1 "`:      ok().Node("Relu", []string{"input"}, []string{"output"}),
		"empty name":                   ok().Node("Relu", []string{"input"}, []string{""}),
		"needs 8 bytes, got 4":         ok().Initializer("w", []float32{1}, 2),
		"negative or too large":        ok().Initializer("w", nil, 1<<33, 1<<33),
		"cannot be given as raw bytes": ok().InitializerRaw("w", String, nil, 0),
	} {
		err := g.Check()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
		if werr := g.Write(filepath.Join(t.TempDir(), "x.onnx")); werr == nil {
			t.Errorf("%q: Write took it", want)
		}
	}
	if err := ok().Initializer("w", []float32{1, 2}, 2).InitializerInt64("s", []int64{1}, 1).Check(); err != nil {
		t.Error(err)
	}
	if n := ok().Initializer("w", []float32{1, 2}, 2).InitializerInt64("s", []int64{1}, 1).Parameters(); n != 2 {
		t.Errorf("%d parameters, want 2", n)
	}
}

func (g *Graph) rename(name string) *Graph { g.g.Name = name; return g }

func TestWriteIsWholeAndRepeatable(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a", "1", "model.onnx"), filepath.Join(dir, "b.onnx")
	for _, p := range []string{a, a, b} {
		if err := Add(Int64, Symbolic, 2).Write(p); err != nil {
			t.Fatal(err)
		}
	}
	da, _ := os.ReadFile(a)
	db, _ := os.ReadFile(b)
	if len(da) == 0 || !bytes.Equal(da, db) {
		t.Errorf("the same graph gave %d and %d bytes", len(da), len(db))
	}
	old := time.Unix(1e9, 0)
	for _, x := range []struct {
		g    *Graph
		kept bool
	}{{Add(Int64, Symbolic, 2), true}, {Add(Int64, Symbolic, 3), false}} {
		if err := errors.Join(os.Chtimes(a, old, old), x.g.Write(a)); err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(a); err != nil || st.ModTime().Equal(old) != x.kept {
			t.Errorf("%v: a file was to be kept: %v", err, x.kept)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "a", "1", ".*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	if err := Add(Int64).Write(filepath.Join(b, "under", "a", "file.onnx")); err == nil {
		t.Error("wrote under a file")
	}
}

func TestDTypeNames(t *testing.T) {
	for _, d := range DTypes() {
		if got, ok := ParseDType(d.String()); !ok || got != d {
			t.Errorf("%d: name %s gives %d, %v", int32(d), d, int32(got), ok)
		}
	}
	if _, ok := ParseDType("INVALID"); ok || DType(14).String() != "INVALID" || DType(14).Size() != 0 {
		t.Error("complex numbers are not in the protocol")
	}
}
