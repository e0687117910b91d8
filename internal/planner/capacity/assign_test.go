package capacity

import (
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// instance is one of a model on a worker, at a place.
func instance(w serving.WorkerID, place int32, v serving.VariantID, kept bool) fleet.InstanceSnapshot {
	i := fleet.InstanceSnapshot{
		Key: fleet.Key{Worker: w, Ordinal: place}, State: fleet.Ready, Slots: 1,
		Variants: []fleet.Loaded{{Variant: v, Warm: true, Wanted: true}},
	}
	if i.Kept = kept; kept {
		i.State = fleet.Draining
	}
	return i
}

// Running instances go on before kept ones are used again, and those before anything is loaded. Draining instances that
// are not kept do not count. A new instance takes a free number.
func TestKeptInstancesAreReused(t *testing.T) {
	gone := instance(3, 1, 7, false)
	gone.State = fleet.Draining
	s := &fleet.Snapshot{
		Instances: []fleet.InstanceSnapshot{
			instance(0, 1, 7, true), instance(1, 2, 8, false), instance(1, 5, 7, true), instance(2, 3, 7, false), gone,
			instance(4, 4, 7, true),
		},
	}
	reusable := Reusable(s)
	if len(reusable) != 5 {
		t.Fatalf("%d instances can be had without a load, want 5", len(reusable))
	}
	if r := RunningByWorker(s); len(r) != 4 || r[1].Variants[0].Variant != 8 || !r[0].Kept {
		t.Errorf("running: %+v", r)
	}
	groups := [][]serving.WorkerID{{0, 1, 2, 3, 4}}
	single := Bundle{Instances: []Instance{{Variant: 7, Slots: 1}}}
	both := Bundle{Instances: []Instance{{Variant: 7, Slots: 1}, {Variant: 8, Slots: 1}}}
	for n, c := range []struct {
		bundles []Bundle
		workers []serving.WorkerID
		places  [][]int32
		loads   int
	}{
		{[]Bundle{single}, []serving.WorkerID{2}, [][]int32{{3}}, 0},
		{[]Bundle{single, single}, []serving.WorkerID{2, 0}, [][]int32{{3}, {1}}, 0},
		{[]Bundle{single, both}, []serving.WorkerID{2, 1}, [][]int32{{3}, {5, 2}}, 0},
		{
			[]Bundle{single, single, both, single, single}, []serving.WorkerID{2, 0, 1, 4, 3},
			[][]int32{{3}, {1}, {5, 2}, {4}, {1}}, 1,
		},
	} {
		assignments, ok := AssignWorkers(reusable, groups, c.bundles)
		if !ok {
			t.Fatalf("%d: no room", n)
		}
		loads := 0
		for k, h := range assignments {
			if h.Worker != c.workers[k] || !slices.Equal(h.Places, c.places[k]) {
				t.Errorf("%d: bundle %d is at %d in %v, want %d in %v", n, k, h.Worker, h.Places, c.workers[k],
					c.places[k])
			}
			for _, kept := range h.Continues {
				if !kept {
					loads++
				}
			}
		}
		if loads != c.loads {
			t.Errorf("%d: %d loads, want %d", n, loads, c.loads)
		}
	}
}
