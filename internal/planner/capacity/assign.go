package capacity

import (
	"cmp"
	"slices"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Instance is an instance that is to run on some worker.
type Instance struct {
	Stage   serving.StageID
	Variant serving.VariantID
	Slots   int
}

// Bundle is the instances that are to share one worker.
type Bundle struct {
	Group     int // index of the group of workers of which any one can host the bundle
	Instances []Instance
}

// Assignment is the worker of a bundle.
type Assignment struct {
	Worker    serving.WorkerID
	Places    []int32 // by instance of the bundle (plan.Instance.Place)
	Continues []bool  // by instance: a running or kept instance goes on as it
}

// AssignWorkers gives each bundle a worker of its group, and returns the assignments by bundle. ok is false when a
// group has fewer workers than bundles.
//
// Bundles go first to workers that already run most of their instances, so that little is loaded (Scrooge §3.6). Then
// they go to workers that run or keep other instances, which are rented anyway, and last to empty ones. An instance
// that goes on keeps its place; a new one gets the lowest number that is free on the worker. running is the result of
// Reusable. groups list the workers that may be used and have none in common.
func AssignWorkers(running []fleet.InstanceSnapshot, groups [][]serving.WorkerID, bundles []Bundle) (
	out []Assignment, ok bool) {
	holds := make(map[serving.WorkerID][]fleet.InstanceSnapshot)
	for _, i := range running {
		holds[i.Key.Worker] = append(holds[i.Key.Worker], i)
	}
	// Step 1: pairs of a bundle and a worker that runs some of it, best first.
	type pair struct{ score, bundle, worker int }
	var pairs []pair
	for b := range bundles {
		x := &bundles[b]
		for _, w := range groups[x.Group] {
			if _, score := matchRunning(x.Instances, holds[w]); score > 0 {
				pairs = append(pairs, pair{score, b, int(w)})
			}
		}
	}
	slices.SortFunc(pairs, func(x, y pair) int {
		return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(x.bundle, y.bundle),
			cmp.Compare(x.worker, y.worker))
	})
	// Step 2: a greedy matching of these pairs.
	out = make([]Assignment, len(bundles))
	assigned, taken := make([]bool, len(bundles)), make(map[serving.WorkerID]bool)
	move := func(b int, w serving.WorkerID) {
		assigned[b], taken[w] = true, true
		out[b] = assignment(w, bundles[b].Instances, holds[w])
	}
	for _, p := range pairs {
		if w := serving.WorkerID(p.worker); !assigned[p.bundle] && !taken[w] {
			move(p.bundle, w)
		}
	}
	// Step 3: the remaining bundles, on workers that run or keep something before empty ones.
	next := make([]int, len(groups))
	var order [][]serving.WorkerID
	for _, g := range groups {
		g = slices.Clone(g)
		slices.SortStableFunc(g, func(x, y serving.WorkerID) int {
			return cmp.Compare(min(len(holds[y]), 1), min(len(holds[x]), 1))
		})
		order = append(order, g)
	}
	for b := range bundles {
		if assigned[b] {
			continue
		}
		g := bundles[b].Group
		for next[g] < len(order[g]) && taken[order[g][next[g]]] {
			next[g]++
		}
		if next[g] == len(order[g]) {
			return nil, false
		}
		move(b, order[g][next[g]])
	}
	return out, true
}

// matchRunning pairs instances with those of a worker that run the same. continues is by instance the index of the one
// that it continues, or -1. score is higher the less has to be loaded. An instance that continues counts 4, one that
// was kept loaded counts 3, and one whose model is loaded with too few slots counts 2.
func matchRunning(instances []Instance, held []fleet.InstanceSnapshot) (continues []int, score int) {
	continues = make([]int, len(instances))
	for k := range continues {
		continues[k] = -1
	}
	used := make([]bool, len(held))
	for _, kept := range []bool{false, true} { // running instances come before kept ones
		for k, want := range instances {
			for n := range held {
				if i := &held[n]; continues[k] < 0 && !used[n] && i.Kept == kept &&
					max(i.Built, i.Slots) >= want.Slots &&
					hosts(i, want) {
					continues[k], used[n] = n, true
					if score += 4; kept {
						score--
					}
				}
			}
		}
	}
	for k, want := range instances {
		if continues[k] < 0 && slices.ContainsFunc(held,
			func(i fleet.InstanceSnapshot) bool { return hosts(&i, want) }) {
			score += 2
		}
	}
	return continues, score
}

// hosts reports whether an instance serves the same stage with the same variant as a planned one.
func hosts(i *fleet.InstanceSnapshot, want Instance) bool {
	v, ok := HostedVariant(*i)
	return ok && i.Stage == want.Stage && v == want.Variant
}

// assignment numbers the instances of a bundle on a worker.
func assignment(w serving.WorkerID, instances []Instance, held []fleet.InstanceSnapshot) Assignment {
	out := Assignment{Worker: w, Places: make([]int32, len(instances)), Continues: make([]bool, len(instances))}
	var numbers []int32
	for _, i := range held {
		numbers = append(numbers, i.Key.Ordinal)
	}
	continues, _ := matchRunning(instances, held)
	for k, n := range continues {
		if n >= 0 {
			out.Places[k], out.Continues[k] = held[n].Key.Ordinal, true
			continue
		}
		number := int32(1)
		for slices.Contains(numbers, number) {
			number++
		}
		out.Places[k] = number
		numbers = append(numbers, number)
	}
	return out
}
