package capacity

import (
	"slices"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Unfit returns which workers and variants a snapshot wants left out of plans. A nil snapshot leaves out none.
func Unusable(spec *serving.Spec, snapshot *fleet.Snapshot) (down, broken []bool) {
	down, broken = make([]bool, len(spec.Workers)), make([]bool, len(spec.Variants))
	if snapshot != nil {
		for _, w := range snapshot.Down {
			down[w] = true
		}
		for _, v := range snapshot.Broken {
			broken[v] = true
		}
	}
	return down, broken
}

// Running returns what each worker serves by a snapshot, or else what it has loaded still. Of several instances on a
// worker the last is taken; what drains and goes does not count.
func RunningByWorker(snapshot *fleet.Snapshot) map[serving.WorkerID]fleet.InstanceSnapshot {
	out := make(map[serving.WorkerID]fleet.InstanceSnapshot)
	for _, i := range Reusable(snapshot) {
		if before, any := out[i.Key.Worker]; !i.Kept || !any || before.Kept {
			out[i.Key.Worker] = i
		}
	}
	return out
}

// Hosted is the variant that an instance runs, or is to run once it is loaded; false when it is to run none.
func HostedVariant(i fleet.InstanceSnapshot) (serving.VariantID, bool) {
	for _, l := range i.Variants {
		if l.Wanted && !l.Warm {
			return l.Variant, true // on its way
		}
	}
	for _, l := range i.Variants {
		if l.Wanted {
			return l.Variant, true
		}
	}
	return serving.None, false
}

// Host is a variant on workers of one group.
type GroupVariant struct {
	Group   int
	Stage   serving.StageID
	Variant serving.VariantID
}

// Place gives counts, by host, to the workers of each group with the fewest loads. It returns the host of every worker
// that has one, and the number of variants that have to be brought up. Per group this is a transportation problem in
// which a worker that already runs the variant costs nothing and every other the same, a little less when it stays with
// its stage (a variant is swapped, the instance lives on); so keeping all that can be kept, then filling from the same
// stage, then from the rest, is optimal. Ties go to the smaller worker and host.
func PlaceCounts(groups [][]serving.WorkerID, hosts []GroupVariant, counts []int,
	running map[serving.WorkerID]fleet.InstanceSnapshot) (at map[serving.WorkerID]int, loads int) {
	at = make(map[serving.WorkerID]int)
	want := append([]int(nil), counts...)
	of := make([][]int, len(groups))
	for k, h := range hosts {
		of[h.Group] = append(of[h.Group], k)
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
		return ok && v == hosts[k].Variant
	})
	loads = fill(func(w serving.WorkerID, k int) bool {
		i, ok := running[w]
		return ok && i.Stage == hosts[k].Stage
	})
	loads += fill(func(serving.WorkerID, int) bool { return true })
	return at, loads
}

// Loads counts the variants of a plan that a snapshot does not have where the plan wants them.
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
