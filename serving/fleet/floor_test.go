package fleet

import (
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/serving"
)

// Below its app's accuracy floor a variant runs what is pinned to it and nothing else, also where it is alone on an
// instance, where it is the active one of a plan, and where it is added later.
func TestFloorsLeaveVariantsToPins(t *testing.T) {
	f := newFleet()
	f.spec.Apps[0].Floor = 0.8 // variant 1 has 0.7
	launch := func(variants ...serving.VariantID) *Instance {
		p := Placement{Terms: Terms{Slots: 1}}
		for _, v := range variants {
			p.Variants = append(p.Variants, Loaded{Variant: v, Limit: 8, Wanted: true})
		}
		i := f.Launch(p, 0)
		for _, v := range variants {
			f.Warm(i, v)
		}
		return i
	}
	both, alone := launch(1, 0), launch(1)
	f.SetActive(both, 0)
	f.Refresh(both)
	task := func(pin serving.VariantID, least float64) *Task {
		return f.Task(f.Add(&Work{Query: 1, Items: 1, Pin: pin, MinAccuracy: least}))
	}
	for _, c := range []struct {
		name string
		i    *Instance
		t    *Task
		want serving.VariantID // None: it cannot serve it
	}{
		{"any", both, task(serving.None, 0), 0},
		{"any that is accurate enough for the client", both, task(serving.None, 0.1), 0},
		{"pinned below", both, task(1, 0), 1},
		{"pinned above", both, task(0, 0), 0},
		{"pinned below what the client wants", both, task(1, 0.75), serving.None},
		{"any, where nothing reaches the floor", alone, task(serving.None, 0), serving.None},
		{"pinned, where nothing reaches the floor", alone, task(1, 0), 1},
	} {
		got := serving.VariantID(serving.None)
		if k := f.Choose(c.i, c.t); k >= 0 {
			got = c.i.Variant(k).Variant
		}
		if got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if alone.Active() >= 0 || alone.Serves(1) || !alone.ServesPinned(1) {
		t.Errorf("alone: active %d, serves %v, pinned %v", alone.Active(), alone.Serves(1), alone.ServesPinned(1))
	}
	f.RemoveVariant(both, both.Find(1))
	f.AddVariant(both, Loaded{Variant: 1, Limit: 8, Wanted: true})
	f.Warm(both, 1)
	if both.Serves(1) || !slices.ContainsFunc([]int{0, 1}, func(k int) bool { return both.Variant(k).Usable() }) {
		t.Error("a variant that is added later does not keep to the floor")
	}
}
