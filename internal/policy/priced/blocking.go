package priced

import (
	"cmp"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
)

// blocked is what is lost while one of too few free machines runs a batch: tasks that come meanwhile and have no time
// left afterwards.
type blocked struct {
	stage serving.StageID
	rate  float64 // value of those tasks, per second
	slack float64 // s that one of them can wait for the machine
	until float64 // s after which enough other machines are free again
	// beside is set where they can begin beside a batch of another stage: only one of their own blocks them.
	overlaps bool
}

// mostNeeded bounds how many machines a class is taken to need at once. Where more serve it, some are always about to
// be free, and one is a small part of them. leastNeeded says that a class needs one, however rarely.
const mostNeeded, leastNeeded = 16, 1e-3

// urgent is a class of tasks, by how long one of them can wait.
type urgent struct {
	stage, class int32
	pool         int32   // of the stage
	slack        float64 // s
}

// asUrgent is up to how many times the slack of a class another one has that wants the same machines as urgently.
const asUrgent = 2

// sortUrgent lists all classes by pool and slack.
func (r *Rule) sortUrgent() {
	r.urgent = r.urgent[:0]
	for s := range r.stages {
		x := &r.stages[s]
		for c := range x.classes {
			r.urgent = append(r.urgent, urgent{int32(s), int32(c), x.pool, x.longest - x.classes[c].least})
		}
	}
	slices.SortStableFunc(r.urgent, func(a, b urgent) int {
		return cmp.Or(cmp.Compare(a.pool, b.pool), cmp.Compare(a.slack, b.slack))
	})
}

// findNeeds computes how many machines every class needs at once, together with the classes that are as urgent on the
// same machines.
func (r *Rule) findNeeds() {
	sum, to := 0.0, 0
	for k := range r.urgent {
		y := &r.urgent[k]
		if k == 0 || y.pool != r.urgent[k-1].pool {
			sum, to = 0, k
		}
		for ; to < len(r.urgent) && r.urgent[to].pool == y.pool; to++ {
			z := &r.urgent[to]
			if z.slack > asUrgent*max(y.slack, 0) {
				break
			}
			sum += r.stages[z.stage].classes[z.class].takes
		}
		r.stages[y.stage].classes[y.class].needs = sum
	}
}

// findBlocked lists, by group, the classes of tasks that need all the machines that are free.
func (r *Rule) findBlocked(v *route.View) {
	for _, g := range r.machines.blocked {
		r.machines.groups[g].blocked = r.machines.groups[g].blocked[:0]
	}
	r.machines.blocked = r.machines.blocked[:0]
	for s := range r.stages {
		x := &r.stages[s]
		if x.rate == 0 {
			continue
		}
		for c := range x.classes {
			r.findBlockedOf(x, c, v)
		}
	}
}

// findBlockedOf lists a class of tasks, with the groups that are fast enough for it, if it needs all that are free of
// them. A machine is as good as free if the batch that it runs ends in time for a task that comes now.
func (r *Rule) findBlockedOf(x *stage, c int, v *route.View) {
	needs := max(x.classes[c].needs, leastNeeded)
	if needs >= float64(x.slots) {
		needs = 1
	}
	if needs > mostNeeded {
		return
	}
	free := r.machines.freeForClass(x, c)
	if free == 0 || float64(free-1) >= needs {
		return
	}
	r.ends = r.ends[:0]
	for k, g := range x.groups {
		if took := x.takes(c, k); took <= x.longest {
			from := len(r.ends)
			r.ends = r.machines.groups[g].ends.AppendSmallest(r.ends, int(needs)+2)
			for i := from; i < len(r.ends); i++ {
				r.ends[i] -= int64((x.longest - took) * 1e9)
			}
		}
	}
	slices.Sort(r.ends)
	soon, _ := slices.BinarySearch(r.ends, int64(v.Now)+1)
	others := float64(free - 1 + soon)
	if others >= needs {
		return
	}
	y := blocked{stage: x.id, until: math.Inf(1), overlaps: r.mayOverlap(x, c)}
	y.rate = x.tasksOf(c) * x.value * (min(others+1, needs) - others) / needs
	if more := soon + max(int(math.Ceil(needs-others)), 1) - 1; more < len(r.ends) {
		y.until = float64(r.ends[more]-int64(v.Now)) / 1e9
	}
	for k, g := range x.groups {
		if took := x.takes(c, k); took <= x.longest && r.machines.groups[g].free > 0 {
			z := y
			z.slack = x.longest - took
			z.rate = max(z.rate-r.machines.groups[g].price, 0) // that much the batch pays for the time anyway
			if len(r.machines.groups[g].blocked) == 0 {
				r.machines.blocked = append(r.machines.blocked, g)
			}
			r.machines.groups[g].blocked = append(r.machines.groups[g].blocked, z)
		}
	}
}

// blocks returns what a batch of a stage that takes t seconds on a group's machine is expected to cost by blocking, and
// what of that is lost of other stages.
func (r *Rule) blocks(g int, t float64, own *stage) (cost, others float64) {
	list := r.machines.groups[g].blocked
	for k := range list {
		y := &list[k]
		if y.overlaps && y.stage != own.id {
			continue
		}
		z := y.rate * max(min(t-y.slack, y.until), 0)
		if cost += z; y.stage != own.id {
			others += z
		}
	}
	return cost, others
}

// measure computes how long a task of each class takes on each group's machines: on the fastest variant for the largest
// task of the class.
func (x *stage) measure(r *Rule) {
	x.times = x.times[:0]
	for c := range x.classes {
		y := &x.classes[c]
		y.least, y.everywhere = math.Inf(1), true
		items := max(y.most, 1)
		for _, g := range x.groups {
			least := r.machines.groups[g].fastest(x, items)
			x.times = append(x.times, least)
			y.least, y.everywhere = min(y.least, least), y.everywhere && least <= x.longest
		}
	}
}

// takes returns what measure has found for a class on the machines of x.groups[k].
func (x *stage) takes(c, k int) float64 { return x.times[c*len(x.groups)+k] }

// freeForClass returns how many slots are free that are fast enough for a class.
func (f *fleetOfMachines) freeForClass(x *stage, c int) (n int) {
	if x.classes[c].everywhere {
		return int(f.freeOf[x.id])
	}
	for k, g := range x.groups {
		if x.takes(c, k) <= x.longest {
			n += f.groups[g].free
		}
	}
	return n
}

// untilNext is how long, in seconds, it takes until a machine that is fast enough for a class is free when one batch
// begins now: the least while two are free, and where no other machine runs anything.
func (f *fleetOfMachines) untilNext(x *stage, c int, v *route.View) float64 {
	if f.freeForClass(x, c) > 1 {
		return leastWait
	}
	next := int64(math.MaxInt64)
	for k, g := range x.groups {
		if x.takes(c, k) > x.longest {
			continue
		}
		if _, end, ok := f.groups[g].ends.Min(); ok {
			next = min(next, end)
		}
	}
	if next == math.MaxInt64 {
		return leastWait
	}
	return max(float64(next-int64(v.Now))/1e9, leastWait)
}

// ownTurns is after how many batches of its length a machine has time for what one leaves behind, if no other machine
// has before: something else may come between.
const ownTurns = 2

// waitFor returns how long a task of a class that is left behind waits for a machine, in seconds: for that which runs a
// batch of t seconds now, or for another one.
func (x *stage) waitFor(c int, t float64) float64 {
	return x.behind + max(min(x.until[c], ownTurns*t), leastWait)
}
