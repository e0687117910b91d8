package controller

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestManyChangesAreTakenTogether changes a fleet every tenth of a second for a minute.
func TestManyChangesAreTakenTogether(t *testing.T) {
	var d damper
	f := types.NamespacedName{Name: "f"}
	now := time.Unix(1000, 0)
	if d.wait(f, now) != 0 {
		t.Fatal("the first change waits")
	}
	writes, longest := 0, time.Duration(0)
	last := now
	for range 600 {
		if d.wait(f, now) == 0 {
			longest = max(longest, now.Sub(last))
			last = now
			d.wrote(f, now)
			writes++
		}
		now = now.Add(100 * time.Millisecond)
	}
	if writes > 12 || longest > dampMost+100*time.Millisecond {
		t.Errorf("%d writes, at most %v apart", writes, longest)
	}
	now = last.Add(dampEnds + time.Second)
	d.wrote(f, now)
	if w := d.wait(f, now); w != dampFirst {
		t.Errorf("after a rest the second change waits for %v, want %v", w, dampFirst)
	}
}
