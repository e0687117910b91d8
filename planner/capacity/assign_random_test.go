package capacity

import (
	"math/rand/v2"
	"testing"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Households get workers of their own of their group; a place is taken once, by what runs there if it goes on; as many
// instances go on as when the household with most to keep chooses first, and a household that could have kept all has
// done so unless another has that worker.
func TestHouse(t *testing.T) {
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
		var households []Bundle
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
			households = append(households, h)
		}
		homes, ok := AssignWorkers(running, groups, households)
		room := true
		for g := range groups {
			room = room && count[g] <= len(groups[g])
		}
		if ok != room {
			t.Fatalf("seed %d: housed %v, there is room: %v", seed, ok, room)
		}
		if !ok {
			full++
			continue
		}
		taken := make(map[serving.WorkerID]int)
		for h, home := range homes {
			if _, twice := taken[home.Worker]; twice || group[home.Worker] != households[h].Group {
				t.Fatalf("seed %d: household %d is on worker %d of group %d, taken before: %v", seed, h, home.Worker,
					group[home.Worker], twice)
			}
			taken[home.Worker] = h
			places := make(map[int32]bool)
			for k, l := range households[h].Instances {
				if places[home.Places[k]] || home.Places[k] < 1 {
					t.Fatalf("seed %d: place %d of worker %d is taken twice", seed, home.Places[k], home.Worker)
				}
				places[home.Places[k]] = true
				var runs *fleet.InstanceSnapshot
				for n := range holds[home.Worker] {
					if i := &holds[home.Worker][n]; i.Key.Ordinal == home.Places[k] {
						runs = i
					}
				}
				same := runs != nil && runs.Stage == l.Stage && max(runs.Built, runs.Slots) >= l.Slots
				if same != home.Continues[k] || runs != nil && !same {
					t.Fatalf("seed %d: lodger %+v at the place of %+v, kept: %v", seed, l, runs, home.Continues[k])
				}
				if same {
					kept++
				}
			}
		}
		for h, home := range homes {
			_, got := matchRunning(households[h].Instances, holds[home.Worker])
			for _, w := range groups[households[h].Group] {
				o, other := taken[w]
				_, could := matchRunning(households[h].Instances, holds[w])
				if could <= got {
					continue
				}
				if !other {
					t.Errorf("seed %d: household %d keeps %d on worker %d, and %d could be kept on %d, which is free",
						seed, h, got, home.Worker, could, w)
				} else if _, theirs := matchRunning(households[o].Instances, holds[w]); theirs < could {
					t.Errorf("seed %d: worker %d went to a household that keeps %d and not to one that keeps %d", seed,
						w, theirs, could)
				}
			}
		}
	}
	if kept == 0 || full == 0 {
		t.Errorf("%d kept, %d without room", kept, full)
	}
}
