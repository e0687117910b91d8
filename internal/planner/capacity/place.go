package capacity

import (
	"slices"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// PlaceCounts distributes counts of offers over the workers of each group with the fewest loads. groups list workers,
// counts[k] is of offers[k], and running is the result of RunningByWorker. It returns the index into offers of every
// worker that gets one, and the number of variants that have to be loaded.
//
// Per group this is a transportation problem. A worker that already runs the variant costs nothing. All others cost the
// same, a little less if the worker stays with its stage, since then the instance stays. So the optimum keeps all
// variants that can be kept, then fills from workers of the same stage, then from all others. Ties go to the smaller
// worker and offer.
func PlaceCounts(groups [][]serving.WorkerID, offers []Offer, counts []int,
	running map[serving.WorkerID]fleet.InstanceSnapshot) (at map[serving.WorkerID]int, loads int) {
	at = make(map[serving.WorkerID]int)
	want := append([]int(nil), counts...)
	of := make([][]int, len(groups))
	for k := range offers {
		of[offers[k].Group] = append(of[offers[k].Group], k)
	}
	fill := func(suits func(w serving.WorkerID, k int) bool) (n int) {
		for g, workers := range groups {
			for _, w := range workers {
				if _, taken := at[w]; taken {
					continue
				}
				for _, k := range of[g] {
					if want[k] > 0 && suits(w, k) {
						at[w] = k
						want[k]--
						n++
						break
					}
				}
			}
		}
		return n
	}
	fill(func(w serving.WorkerID, k int) bool {
		i, ok := running[w]
		if !ok {
			return false
		}
		v, ok := HostedVariant(i)
		return ok && v == offers[k].Variant
	})
	loads = fill(func(w serving.WorkerID, k int) bool {
		i, ok := running[w]
		return ok && i.Stage == offers[k].Stage
	})
	loads += fill(func(serving.WorkerID, int) bool { return true })
	return at, loads
}

// Loads counts the variants of a plan that their workers do not have by a snapshot.
func Loads(snapshot *fleet.Snapshot, p *plan.Plan) int {
	running, n := RunningByWorker(snapshot), 0
	for _, i := range p.Instances {
		for _, v := range i.Variants {
			if !slices.ContainsFunc(running[i.Worker].Variants, func(l fleet.Loaded) bool {
				return l.Variant == v.Variant && l.Wanted
			}) {
				n++
			}
		}
	}
	return n
}
