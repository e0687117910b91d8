package capacity

import (
	"math/rand/v2"
	"testing"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Every bundle gets a worker of its own from its group. Every place is used once, by the instance that runs there if
// that continues. No bundle could keep more instances on a free worker, or on one that keeps less for another bundle.
func TestAssignmentsKeepMost(t *testing.T) {
	kept, full := 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 6))
		groups := make([][]serving.WorkerID, 1+rng.IntN(2))
		group := make(map[serving.WorkerID]int)
		var running []fleet.InstanceSnapshot
		holds := make(map[serving.WorkerID][]fleet.InstanceSnapshot)
		for w := range serving.WorkerID(2 + rng.IntN(6)) {
			g := rng.IntN(len(groups))
			groups[g], group[w] = append(groups[g], w), g
			for n := range rng.IntN(3) {
				s := serving.StageID(rng.IntN(3))
				i := fleet.InstanceSnapshot{Key: fleet.Key{
					Worker: w, Ordinal: int32(1 + 3*n + rng.IntN(3)),
				}, Stage: s, Slots: 1 + rng.IntN(2), State: fleet.Ready,
					Variants: []fleet.Loaded{{Variant: serving.VariantID(s), Wanted: true, Warm: true}}}
				running, holds[w] = append(running, i), append(holds[w], i)
			}
		}
		var bundles []Bundle
		count := make([]int, len(groups))
		for range rng.IntN(6) {
			h := Bundle{Group: rng.IntN(len(groups))}
			count[h.Group]++
			for range 1 + rng.IntN(3) {
				s := rng.IntN(3)
				h.Instances = append(h.Instances, Instance{
					Stage: serving.StageID(s), Variant: serving.VariantID(s), Slots: 1 + rng.IntN(2),
				})
			}
			bundles = append(bundles, h)
		}
		assignments, ok := AssignWorkers(running, groups, bundles)
		room := true
		for g := range groups {
			room = room && count[g] <= len(groups[g])
		}
		if ok != room {
			t.Fatalf("seed %d: assigned %v, there is room: %v", seed, ok, room)
		}
		if !ok {
			full++
			continue
		}
		taken := make(map[serving.WorkerID]int)
		for h, at := range assignments {
			if _, twice := taken[at.Worker]; twice || group[at.Worker] != bundles[h].Group {
				t.Fatalf("seed %d: bundle %d is on worker %d of group %d, taken before: %v", seed, h, at.Worker,
					group[at.Worker], twice)
			}
			taken[at.Worker] = h
			places := make(map[int32]bool)
			for k, l := range bundles[h].Instances {
				if places[at.Places[k]] || at.Places[k] < 1 {
					t.Fatalf("seed %d: place %d of worker %d is taken twice", seed, at.Places[k], at.Worker)
				}
				places[at.Places[k]] = true
				var runs *fleet.InstanceSnapshot
				for n := range holds[at.Worker] {
					if i := &holds[at.Worker][n]; i.Key.Ordinal == at.Places[k] {
						runs = i
					}
				}
				same := runs != nil && runs.Stage == l.Stage && max(runs.Built, runs.Slots) >= l.Slots
				if same != at.Continues[k] || runs != nil && !same {
					t.Fatalf("seed %d: instance %+v at the place of %+v, kept: %v", seed, l, runs, at.Continues[k])
				}
				if same {
					kept++
				}
			}
		}
		for h, at := range assignments {
			_, got := matchRunning(bundles[h].Instances, holds[at.Worker])
			for _, w := range groups[bundles[h].Group] {
				o, other := taken[w]
				_, could := matchRunning(bundles[h].Instances, holds[w])
				if could <= got {
					continue
				}
				if !other {
					t.Errorf("seed %d: bundle %d keeps %d on worker %d, and %d could be kept on %d, which is free",
						seed, h, got, at.Worker, could, w)
				} else if _, theirs := matchRunning(bundles[o].Instances, holds[w]); theirs < could {
					t.Errorf("seed %d: worker %d went to a bundle that keeps %d and not to one that keeps %d", seed,
						w, theirs, could)
				}
			}
		}
	}
	if kept == 0 || full == 0 {
		t.Errorf("%d kept, %d without room", kept, full)
	}
}
