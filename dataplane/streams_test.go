package dataplane

import (
	"fmt"
	"hash/fnv"
	"testing"
)

func TestStreamNumbers(t *testing.T) {
	for name, want := range map[string]uint64{"": 0, "7": 7, "18446744073709551615": 1<<64 - 1} {
		if got := streamNumber(name); got != want {
			t.Errorf("%q has number %d, want %d", name, got, want)
		}
	}
	seen := map[uint64]string{}
	for k := range 100000 {
		for _, name := range []string{fmt.Sprint(k + 1), fmt.Sprint("camera ", k), fmt.Sprint("0", k)} {
			n := streamNumber(name)
			if other, ok := seen[n]; ok || n == 0 {
				t.Fatalf("%q and %q are both %d", name, other, n)
			}
			seen[n] = name
		}
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte("camera 1"))
	if got := streamNumber("camera 1"); got != h.Sum64()|named {
		t.Errorf("%d, want what the standard library makes of it", got)
	}
}
