package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/bounded"
)

// filled returns the folder of a closed registry with functions, one of which is deleted, and the name of a model.
func filled(t testing.TB, functions int) (dir, sum string) {
	t.Helper()
	dir = t.TempDir()
	f, err := OpenFunctions(dir)
	if err != nil {
		t.Fatal(err)
	}
	model := []byte("a model")
	h := sha256.Sum256(model)
	sum = hex.EncodeToString(h[:])
	if err := f.PutModel(sum, bytes.NewReader(model), 100); err != nil {
		t.Fatal(err)
	}
	for k := range functions {
		x := Function{
			Name: strings.Repeat("f", k+1), Version: 1, Model: Model{sum, int64(len(model))},
			Labels: map[string]string{"text": strings.Repeat("x", 300)},
		}
		if err := f.Put(x); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Delete("f"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, sum
}

// A registry that is empty, gone or damaged says nothing about the model files beside it: they stay.
func TestModelsOutliveTheirRegistry(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"emptied": func(path string) error { return os.Truncate(path, 0) },
		"removed": os.Remove,
		"overwritten": func(path string) error {
			return os.WriteFile(path, bytes.Repeat([]byte("garbage "), 1<<12), 0o600)
		},
		"cut short": func(path string) error { return os.Truncate(path, 3*4096) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, sum := filled(t, 40)
			path := filepath.Join(dir, functionsFile)
			if err := spoil(path); err != nil {
				t.Fatal(err)
			}
			f, err := OpenFunctions(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if !f.HasModel(sum) {
				t.Error("the model file was deleted")
			}
			aside, err := filepath.Glob(path + ".damaged-*")
			if wrong := name == "overwritten" || name == "cut short"; err != nil || (len(aside) == 1) != wrong ||
				(f.Lost() != "") != wrong {
				t.Errorf("put aside: %v; lost: %q", aside, f.Lost())
			}
		})
	}
}

// Flipped bytes anywhere in a registry end no process: it opens as it is, or is put aside, and works afterwards.
func TestDamagedRegistriesArePutAside(t *testing.T) {
	dir, sum := filled(t, 60)
	whole, err := os.ReadFile(filepath.Join(dir, functionsFile))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	lost := 0
	for range 60 {
		b := bytes.Clone(whole)
		for range 1 + rng.IntN(20) {
			b[rng.IntN(len(b))] ^= byte(1 + rng.IntN(255))
		}
		if reopened(t, b, sum) {
			lost++
		}
	}
	if lost == 0 {
		t.Error("no damage was found")
	}
}

// reopened opens a registry with these bytes, uses it, and reports whether it was put aside.
func reopened(t testing.TB, b []byte, sum string) (lost bool) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, functionsFile), b, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFunctions(dir)
	if err != nil {
		return false // such as a record that cannot be read, or a later version
	}
	defer f.Close()
	_, _ = f.List()
	if err := f.Keep(IdleTable, map[string][]byte{"a": []byte("b"), sum: nil}); err != nil {
		t.Error(err)
	}
	return f.Lost() != ""
}

// FuzzPages: no file makes the check of pages panic, loop or allocate much, and bbolt can walk what it takes.
func FuzzPages(f *testing.F) {
	dir, _ := filled(f, 10)
	whole, err := os.ReadFile(filepath.Join(dir, functionsFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{}, uint32(0), byte(0))
	f.Add([]byte("x"), uint32(4096), byte(1))
	f.Fuzz(func(t *testing.T, patch []byte, at uint32, flip byte) {
		b := bytes.Clone(whole)
		b[int(at)%len(b)] ^= flip
		copy(b[int(at)%len(b):], patch)
		var damage error
		bounded.Run(t, 64*len(b), func() { damage = checkPages(bytes.NewReader(b), int64(len(b))) })
		if damage == nil {
			reopened(t, b, strings.Repeat("0", 64))
		}
	})
}

// A registry of a later program is refused, and left as it is.
func TestLaterSchemasAreRefused(t *testing.T) {
	dir, sum := filled(t, 2)
	path := filepath.Join(dir, functionsFile)
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(schemaTable).Put(schemaKey, []byte("99")) }); err !=
		nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFunctions(dir); err == nil || !strings.Contains(err.Error(), "version 99") {
		t.Errorf("%v: want an error that names the version", err)
	}
	if _, err := os.Stat(filepath.Join(dir, modelsFolder, sum+modelEnding)); err != nil {
		t.Error(err)
	}
}

// The file of states stays near its limit, although pages are never full.
func TestTheFileOfStatesIsBounded(t *testing.T) {
	const limit = 4 << 20
	dir := t.TempDir()
	s, err := OpenStates(dir, limit)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rng := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		states := make(map[dataplane.StateKey][]byte)
		for range 40 {
			k := dataplane.StateKey{App: "a", Stage: "s", Stream: strings.Repeat("k", 1+rng.IntN(200))}
			k.Stream += hex.EncodeToString([]byte{byte(rng.Uint32()), byte(rng.Uint32())})
			states[k] = make([]byte, 2100+rng.IntN(6000))
		}
		if err := s.Keep(states); err != nil {
			t.Fatal(err)
		}
	}
	used := int64(0) // the file itself grows in larger steps
	if err := s.db.View(func(tx *bbolt.Tx) error { used = tx.Size(); return nil }); err != nil {
		t.Fatal(err)
	}
	if used > limit+limit/4 {
		t.Errorf("pages of %d bytes are in use, the limit is %d", used, limit)
	}
}
