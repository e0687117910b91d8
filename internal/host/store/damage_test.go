package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
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
		bounded.Run(t, 64*len(b), func() { salvage(bytes.NewReader(b), int64(len(b))) })
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

// What can be read of a damaged registry is kept, and the rest is said to be lost: a page with some of the functions is
// overwritten, and the others are there, can be replaced, and their models stay.
func TestWhatCanBeReadIsKept(t *testing.T) {
	const functions = 60
	dir, sum := filled(t, functions)
	path := filepath.Join(dir, functionsFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	some := 0
	for at := 2 * page; at < len(whole); at += page {
		b := bytes.Clone(whole)
		for k := range page {
			b[at+k] = 0xA5
		}
		damage := checkPages(bytes.NewReader(b), int64(len(b)))
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := OpenFunctions(dir)
		if err != nil {
			t.Fatal(err)
		}
		list, err := f.List()
		if err != nil {
			t.Fatal(err)
		}
		if (damage == nil) != (f.Lost() == "") {
			t.Errorf("page %d: %v, and %q was told", at/page, damage, f.Lost())
		}
		if whole[at+8] == freelistPage && len(list) != functions-1 {
			t.Errorf("page %d, a list of free pages: %d functions are left of %d", at/page, len(list), functions-1)
		}
		if damage != nil && len(list) > 0 && len(list) < functions-1 {
			some++
			if !strings.Contains(f.Lost(), "are kept") || !strings.Contains(f.Lost(), "are lost") {
				t.Errorf("page %d: %q", at/page, f.Lost())
			}
		}
		for _, x := range list {
			if next, err := f.Next(x.Name); err != nil || next != x.Version+1 {
				t.Errorf("page %d: the version after %d is %d, %v", at/page, x.Version, next, err)
			}
		}
		if !f.HasModel(sum) {
			t.Errorf("page %d: a model is gone", at/page)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if some == 0 {
		t.Error("no damage left a part of the functions")
	}
}

// Of damaged states those that can be read are kept, in their order, and the oldest are still forgotten first.
func TestStatesThatCanBeReadAreKept(t *testing.T) {
	dir := t.TempDir()
	s := openStates(t, dir, 1<<20)
	name := func(k int) dataplane.StateKey { return stream(fmt.Sprintf("%03d", k)) }
	const all = 200
	for k := range all {
		if err := s.Keep(map[dataplane.StateKey][]byte{name(k): bytes.Repeat([]byte{byte(k)}, 500)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, statesFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	some := false
	for at := 2 * os.Getpagesize(); at < len(whole) && !some; at += os.Getpagesize() {
		b := bytes.Clone(whole)
		copy(b[at:], bytes.Repeat([]byte{0xA5}, os.Getpagesize()))
		if checkPages(bytes.NewReader(b), int64(len(b))) == nil {
			continue
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		again := openStates(t, dir, 1<<20)
		var kept []int
		for k := range all {
			if got, err := again.Get(name(k)); err == nil && got != nil {
				if !bytes.Equal(got, bytes.Repeat([]byte{byte(k)}, 500)) {
					t.Errorf("state %d is another one", k)
				}
				kept = append(kept, k)
			}
		}
		if n := len(kept); n > 10 && n < all {
			some = true
			again.limit = int64(n/2) * 600
			if err := again.Keep(map[dataplane.StateKey][]byte{stream("new"): {1}}); err != nil {
				t.Fatal(err)
			}
			oldest, err1 := again.Get(name(kept[0]))
			newest, err2 := again.Get(name(kept[n-1]))
			if err := errors.Join(err1, err2); err != nil || oldest != nil || newest == nil {
				t.Errorf("the oldest %v, the newest %v, %v: want the oldest to make way", oldest, newest, err)
			}
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !some {
		t.Error("no damage left a part of the states")
	}
}
