package dataplane

import (
	"strconv"
	"testing"
)

func TestStreamNumber(t *testing.T) {
	if n := StreamNumber(""); n != 0 {
		t.Errorf("no name has number %d", n)
	}
	seen := map[uint64]string{0: ""}
	for i := range 100_000 {
		name := strconv.Itoa(i)
		n := StreamNumber(name)
		if other, ok := seen[n]; ok {
			t.Fatalf("%q and %q have number %d", name, other, n)
		}
		if n != StreamNumber(name) {
			t.Fatalf("%q has two numbers", name)
		}
		seen[n] = name
	}
}
