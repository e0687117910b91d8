package engine

import (
	"math/rand/v2"
	"testing"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// The table against a map: IDs in sequence with stragglers that stay, and IDs that collide.
func TestTableAgainstMap(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		rng := rand.New(rand.NewPCG(seed, 8))
		x, want := newTable(), map[serving.QueryID]fleet.Ref{}
		next := serving.QueryID(1)
		for op := range 30000 {
			id := next
			switch rng.IntN(5) {
			case 0, 1:
				next++
			case 2: // far away, often the same home slot
				id = serving.QueryID(1 + rng.IntN(50)*1024 + rng.IntN(8))
			default:
				for id = range want { // any that is there
					break
				}
				x.remove(id)
				delete(want, id)
				if x.get(id) != fleet.Nil {
					t.Fatalf("seed %d, operation %d: %d was removed and is there", seed, op, id)
				}
				continue
			}
			x.put(id, fleet.Ref(op))
			want[id] = fleet.Ref(op)
		}
		away := 0
		for s, id := range x.ids {
			if id != 0 && x.home(id) != s {
				away++
			}
		}
		if x.n != len(want) || x.away != away {
			t.Fatalf("seed %d: %d entries, %d away; there are %d and %d", seed, x.n, x.away, len(want), away)
		}
		for id, r := range want {
			if x.get(id) != r {
				t.Fatalf("seed %d: %d leads to %d, want %d", seed, id, x.get(id), r)
			}
		}
	}
}
