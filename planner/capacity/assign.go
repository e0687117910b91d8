package capacity

import (
	"cmp"
	"slices"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Lodger is an instance that is to run on some worker.
type Instance struct {
	Stage   serving.StageID
	Variant serving.VariantID
	Slots   int
}

// Household is the instances that are to share one worker.
type Bundle struct {
	Group     int // of workers of which one will do
	Instances []Instance
}

// Home is where a household goes.
type Assignment struct {
	Worker    serving.WorkerID
	Places    []int32 // by lodger (plan.Instance.Place)
	Continues []bool  // by lodger: that an instance that runs goes on
}

// House finds each household a worker of its group: first where most of its instances run already, so that little is
// loaded (Scrooge §3.6), then on workers that hold something, which are rented already, and last on those that hold
// nothing. An instance that runs, or is taken up again, keeps its place; a new one takes a number that nothing there
// has. running is what Living says; groups, apart from each other, list the workers that may be taken. ok is false when
// a group has fewer workers than households.
func AssignWorkers(running []fleet.InstanceSnapshot, groups [][]serving.WorkerID, households []Bundle) (homes []Assignment,
	ok bool) {
	holds := make(map[serving.WorkerID][]fleet.InstanceSnapshot)
	for _, i := range running {
		holds[i.Key.Worker] = append(holds[i.Key.Worker], i)
	}
	type pair struct{ score, household, worker int }
	var pairs []pair
	for h := range households {
		x := &households[h]
		for _, w := range groups[x.Group] {
			if _, score := matchRunning(x.Instances, holds[w]); score > 0 {
				pairs = append(pairs, pair{score, h, int(w)})
			}
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.household, b.household),
			cmp.Compare(a.worker, b.worker))
	})
	homes = make([]Assignment, len(households))
	housed, taken := make([]bool, len(households)), make(map[serving.WorkerID]bool)
	move := func(h int, w serving.WorkerID) {
		housed[h], taken[w] = true, true
		homes[h] = assignment(w, households[h].Instances, holds[w])
	}
	for _, p := range pairs {
		if w := serving.WorkerID(p.worker); !housed[p.household] && !taken[w] {
			move(p.household, w)
		}
	}
	next := make([]int, len(groups))
	var order [][]serving.WorkerID
	for _, g := range groups {
		g = slices.Clone(g)
		slices.SortStableFunc(g, func(a, b serving.WorkerID) int {
			return cmp.Compare(min(len(holds[b]), 1), min(len(holds[a]), 1))
		})
		order = append(order, g)
	}
	for h := range households {
		if housed[h] {
			continue
		}
		g := households[h].Group
		for next[g] < len(order[g]) && taken[order[g][next[g]]] {
			next[g]++
		}
		if next[g] == len(order[g]) {
			return nil, false
		}
		move(h, order[g][next[g]])
	}
	return homes, true
}

// settle pairs lodgers with instances that run the same: those that go on as they are count four, those that are kept
// loaded and taken up again three, those with another number of slots, whose model is there at least, two. kept holds
// the index of the instance that goes on, by lodger, or -1.
func matchRunning(lodgers []Instance, held []fleet.InstanceSnapshot) (kept []int, score int) {
	kept = make([]int, len(lodgers))
	for k := range kept {
		kept[k] = -1
	}
	used := make([]bool, len(held))
	for _, rests := range []bool{false, true} { // what runs comes before what is kept
		for k, l := range lodgers {
			for n := range held {
				if i := &held[n]; kept[k] < 0 && !used[n] && i.Kept == rests && max(i.Built, i.Slots) >= l.Slots &&
					hosts(i, l) {
					kept[k], used[n] = n, true
					if score += 4; rests {
						score--
					}
				}
			}
		}
	}
	for k, l := range lodgers {
		if kept[k] < 0 && slices.ContainsFunc(held, func(i fleet.InstanceSnapshot) bool { return hosts(&i, l) }) {
			score += 2
		}
	}
	return kept, score
}

// runs tells whether an instance runs what a lodger is to run.
func hosts(i *fleet.InstanceSnapshot, l Instance) bool {
	v, ok := HostedVariant(*i)
	return ok && i.Stage == l.Stage && v == l.Variant
}

func assignment(w serving.WorkerID, lodgers []Instance, held []fleet.InstanceSnapshot) Assignment {
	out := Assignment{Worker: w, Places: make([]int32, len(lodgers)), Continues: make([]bool, len(lodgers))}
	var numbers []int32
	for _, i := range held {
		numbers = append(numbers, i.Key.Ordinal)
	}
	kept, _ := matchRunning(lodgers, held)
	for k, n := range kept {
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
