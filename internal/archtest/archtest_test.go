package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTree holds the tree that this file is part of against the rules.
func TestTree(t *testing.T) {
	root := filepath.Join("..", "..")
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(mod), "module "+Module+"\n") {
		t.Fatalf("go.mod does not begin with module %s: the rules would match no import of ours", Module)
	}
	pkgs, err := Load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range Check(pkgs) {
		t.Error(v)
	}
}

// TestWideningsHaveReasons keeps the exceptions of the table from being silent.
func TestWideningsHaveReasons(t *testing.T) {
	for _, e := range sameFloor {
		if e.why == "" {
			t.Errorf("%s -> %s needs a reason", e.from, e.to)
		}
	}
	for _, b := range bans {
		if b.why == "" {
			t.Errorf("ban of %v for %v needs a reason", b.to, b.from)
		}
	}
}
