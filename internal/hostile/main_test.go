package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The tests of the list are there.
func TestTheListIsUpToDate(t *testing.T) {
	all, err := attacks(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		files, err := filepath.Glob(filepath.Join("../..", a.folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(b)
		}
		for _, name := range a.tests {
			if !strings.Contains(text.String(), "\nfunc "+name+"(") {
				t.Errorf("%s: %s has no %s", a.what, a.folder, name)
			}
		}
	}
}

// A row holds when all of its tests have passed.
func TestRows(t *testing.T) {
	of, err := read(strings.NewReader(`{"Action":"pass","Test":"TestA/one"}
{"Action":"pass","Test":"TestA"}
{"Action":"output","Test":"TestB","Output":"wrong"}
{"Action":"fail","Test":"TestB"}
{"Action":"skip","Test":"TestC"}
{"Action":"fail"}
`), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		tests []string
		tried int
		held  string
	}{
		{[]string{"TestA"}, 2, "yes"},
		{[]string{"TestA", "TestB"}, 3, "NO"},
		{[]string{"TestA", "TestC"}, 2, "not tried: something that it needs is missing"},
		{[]string{"TestD"}, 0, "not tried: there is no TestD"},
	} {
		if tried, held := row(attack{tests: x.tests}, of); tried != x.tried || held != x.held {
			t.Errorf("%v: %d, %q", x.tests, tried, held)
		}
	}
	if _, err := attacks("one | two"); err == nil {
		t.Error("a line of two fields is read")
	}
}
