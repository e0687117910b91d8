package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func put(t *testing.T, f *Functions, name string, model []byte, version int) Function {
	t.Helper()
	if err := f.PutModel(sum(model), bytes.NewReader(model), 1000); err != nil {
		t.Fatal(err)
	}
	x := Function{Name: name, Version: version, Deployed: time.Unix(1, 0).UTC(),
		Model: Model{SHA256: sum(model), Bytes: int64(len(model))}, Latency: time.Second, Percentile: 99,
		Labels: map[string]string{"a": "b"}, Profile: []byte(`{"version":1}`)}
	if err := f.Put(x); err != nil {
		t.Fatal(err)
	}
	return x
}

func open(t *testing.T, dir string) *Functions {
	t.Helper()
	f, err := OpenFunctions(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestFunctionsAreKept(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	one, two := []byte("one"), []byte("two")
	put(t, f, "b", one, 1)
	a := put(t, f, "a", one, 1)
	b := put(t, f, "b", two, 2)
	put(t, f, "c", []byte("three"), 1)
	if err := f.Delete("c"); err != nil {
		t.Fatal(err)
	}
	if n, err := f.Next("c"); n != 2 || err != nil {
		t.Errorf("%d, %v: a name that was deleted goes on counting", n, err)
	}
	if err := f.Keep(OperatorTable, map[string][]byte{"x": {1}, "y": {2}, "z": nil}); err != nil {
		t.Fatal(err)
	}
	stray := filepath.Join(dir, "models", uploadPrefix+"1")
	other := filepath.Join(dir, "models", "readme")
	for _, p := range []string{stray, other} {
		if err := os.WriteFile(p, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = open(t, dir)
	list, err := f.List()
	if err != nil || !reflect.DeepEqual(list, []Function{a, b}) {
		t.Errorf("%+v, %v", list, err)
	}
	for _, x := range list {
		if err := f.CheckModel(x.Model); err != nil {
			t.Error(err)
		}
	}
	if f.HasModel(sum([]byte("three"))) {
		t.Error("the model of a deleted function is still there after a start")
	}
	if _, err := os.Stat(stray); err == nil {
		t.Error("an upload that was cut short is still there")
	}
	if _, err := os.Stat(other); err != nil {
		t.Error("a file that is none of ours was removed")
	}
	keys := ""
	if err := f.Each(OperatorTable, func(k string, v []byte) error {
		keys += k + string('0'+rune(v[0]))
		return nil
	}); err != nil || keys != "x1y2" {
		t.Errorf("%q, %v", keys, err)
	}
	if v, err := f.Get(OperatorTable, "y"); err != nil || !bytes.Equal(v, []byte{2}) {
		t.Error(v, err)
	}
	if _, err := f.Get("functions", "a"); err == nil {
		t.Error("a table that is not for others was opened")
	}
}

func TestFunctionsRefuse(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	model := []byte("model")
	for _, bad := range []string{"", "..", "../../x", strings.Repeat("A", 64), sum(model) + "/"} {
		if err := f.PutModel(bad, bytes.NewReader(model), 1000); err == nil || f.HasModel(bad) {
			t.Errorf("checksum %q was taken", bad)
		}
	}
	if err := f.PutModel(sum(model), bytes.NewReader(model), 4); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	if err := f.PutModel(sum([]byte("other")), bytes.NewReader(model), 1000); !errors.Is(err, ErrSum) {
		t.Error(err)
	}
	if files, _ := os.ReadDir(filepath.Join(dir, "models")); len(files) > 0 {
		t.Errorf("%v are left of models that were refused", files)
	}
	if err := f.Put(Function{Name: "a", Version: 1, Model: Model{SHA256: sum(model), Bytes: 5}}); err == nil {
		t.Error("a function without its model was kept")
	}
	x := put(t, f, "a", model, 1)
	for _, version := range []int{1, 3} {
		if x.Version = version; f.Put(x) == nil {
			t.Errorf("version %d follows version 1", version)
		}
	}
	if _, err := OpenFunctions(dir); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second process was let in: %v", err)
	}
	// A model that the disk has changed is found out.
	if err := os.WriteFile(f.ModelPath(sum(model)), []byte("lodem"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.CheckModel(x.Model); !errors.Is(err, ErrSum) {
		t.Error(err)
	}
}
