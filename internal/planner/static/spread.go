package static

import (
	"cmp"
	"slices"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// numbered is a placement with its number on its worker (plan.Instance.Place).
type numbered struct {
	Instance
	place int32
}

// placeRest places the stages that Instances leaves out: as many instances of each as its app wants at least, or one,
// each on the least loaded worker, where it takes turns with others on all cores. That is never more than an app may
// have at most. Instances that run stay on their worker; those beyond the number are left out.
func (p *Planner) placeRest(r *plan.Request) []numbered {
	given := make([]bool, len(r.Spec.Stages))
	load := make([]int, len(r.Spec.Workers)) // instances, or the cores that are written down for one
	taken := make(map[fleet.Key]bool)
	down := make([]bool, len(r.Spec.Workers))
	for n, i := range p.Instances {
		if int(i.Stage) < len(given) && int(i.Worker) < len(load) && i.Stage >= 0 && i.Worker >= 0 {
			given[i.Stage] = true
			load[i.Worker] += max(i.Cores, 1) * max(i.Slots, 1)
			taken[fleet.Key{Worker: i.Worker, Ordinal: int32(n) + 1}] = true
		}
	}
	running := make([][]fleet.Key, len(r.Spec.Stages))
	if r.Snapshot != nil {
		for _, w := range r.Snapshot.Down {
			down[w] = true
		}
		for _, i := range r.Snapshot.Instances {
			if (i.State != fleet.Draining || i.Kept) && i.State != fleet.Stopped && !given[i.Stage] && !taken[i.Key] &&
				!down[i.Key.Worker] {
				running[i.Stage] = append(running[i.Stage], i.Key)
				taken[i.Key] = true
				load[i.Key.Worker]++
			}
		}
	}
	var out []numbered
	add := func(s serving.StageID, k fleet.Key) {
		out = append(out, numbered{
			Instance{Worker: k.Worker, Stage: s, Variants: r.Spec.Stages[s].Variants}, k.Ordinal,
		})
	}
	for s := range r.Spec.Stages {
		id, app := serving.StageID(s), &r.Spec.Apps[r.Spec.Stages[s].App]
		if given[s] {
			continue
		}
		want := max(app.MinInstances, 1)
		for _, k := range running[s] {
			if want > 0 {
				add(id, k)
				want--
			}
		}
		for range want {
			w := p.leastLoaded(load, down)
			ordinal := int32(1)
			for taken[fleet.Key{Worker: w, Ordinal: ordinal}] {
				ordinal++
			}
			taken[fleet.Key{Worker: w, Ordinal: ordinal}] = true
			load[w]++
			add(id, fleet.Key{Worker: w, Ordinal: ordinal})
		}
	}
	slices.SortStableFunc(out, func(a, b numbered) int {
		return cmp.Or(cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.place, b.place))
	})
	return out
}

// leastLoaded returns the worker with the least load. It returns one that is down only where all are.
func (p *Planner) leastLoaded(load []int, down []bool) serving.WorkerID {
	best := 0
	for w := range load {
		if down[best] != down[w] && !down[w] || down[best] == down[w] && load[w] < load[best] {
			best = w
		}
	}
	return serving.WorkerID(best)
}
