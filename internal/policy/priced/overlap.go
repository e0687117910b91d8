package priced

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

const (
	// overlapSlots is with how many slots of the machines that serve a stage none of its batches begins beside others:
	// some slot is always about to be free.
	overlapSlots = 8
	// overlapShare is the part of the machines that tasks keep busy, with those as urgent, from which on machines idle
	// for them: beside others they take twice the time.
	overlapShare = 0.25
	// overlapDear is by what factor machine time is dearer for a batch that begins beside another one: it is small, and
	// scarce time is better given to full batches.
	overlapDear = 3
	// overlapSeeds is how many tasks of a queue are tried as the first of such a batch. overlapTasks bounds its tasks.
	overlapSeeds, overlapTasks = 8, 16
)

// findOverlaps notes of which stages batches may begin beside others.
func (r *Rule) findOverlaps() {
	r.overlap = false
	for s := range r.stages {
		x := &r.stages[s]
		x.overlaps = false
		for _, g := range x.groups {
			for _, o := range r.machines.groups[g].holding(x) {
				x.overlaps = x.overlaps || o.together != nil
			}
		}
		x.overlaps = x.overlaps && x.slots < overlapSlots
		r.overlap = r.overlap || x.overlaps
	}
}

// measureTogether takes up what batches take beside one more than a machine's slots.
func (o *option) measureTogether(v *route.View, d serving.DeviceTypeID, slots int) {
	o.together = make([]float64, len(o.seconds))
	for n := 1; n < len(o.seconds); n++ {
		o.together[n] = max(v.Fleet.EvenLatency(o.variant, d, n, slots+1).Seconds(), o.even[n])
	}
}

// overlapping is a batch that could begin beside others.
type overlapping struct {
	batch
	machine int32
}

// serveOverlaps begins batches beside those that run, where every machine of a stage is busy and its tasks cannot wait
// until one is free. Then all run slower. A batch begins so only if what runs is in time all the same.
func (r *Rule) serveOverlaps(v *route.View) {
	for s := range r.stages {
		x := &r.stages[s]
		for x.overlaps && v.Fleet.Central(x.id).Len() > 0 && !r.machines.freeFor(x) {
			b := r.bestOverlap(v, x)
			if b.n == 0 || !r.startOverlap(v, x, &b) {
				break
			}
		}
	}
}

// bestOverlap returns the batch of a stage that brings most beside others; one without tasks where none should begin.
func (r *Rule) bestOverlap(v *route.View, x *stage) (best overlapping) {
	if !r.hasCollected(x) {
		x.collect(r, v, v.Fleet.Central(x.id))
	}
	if !x.hurried(v.Now) {
		return best
	}
	for _, g := range x.groups {
		m := r.roomToOverlap(v, int(g), x)
		if m < 0 {
			continue
		}
		y := &r.machines.groups[g]
		options := y.serving(x)
		for k := range options {
			if w := r.way(x, int(g), &options[k], overlapDear*y.price); w.option.together != nil {
				for first := range min(overlapSeeds, x.timely()) {
					r.growOverlap(v, &best, &w, m, first)
				}
			}
		}
	}
	return best
}

// mayOverlap reports whether a task of a class that comes now would be in time beside a batch that runs all the while.
func (r *Rule) mayOverlap(x *stage, c int) bool {
	if !x.overlaps || x.classes[c].needs > overlapShare*float64(x.slots) {
		return false
	}
	items := max(x.classes[c].most, 1)
	for _, g := range x.groups {
		if r.machines.groups[g].scarce() {
			continue
		}
		options := r.machines.groups[g].serving(x)
		for k := range options {
			if o := &options[k]; o.together != nil && items <= o.limit && o.together[items] <= x.longest {
				return true
			}
		}
	}
	return false
}

// timely returns how many tasks wait and can be in time.
func (x *stage) timely() int { return len(x.waiting) + len(x.differing) }

// at returns one of them, and its items.
func (x *stage) at(k int) (y *place, items int) {
	if x.mixed {
		return &x.differing[k].place, x.differing[k].items
	}
	return &x.waiting[k], 1
}

// hurried reports whether one of the first tasks that wait loses by waiting until a machine is free.
func (x *stage) hurried(now serving.Time) bool {
	for k := range min(overlapSeeds, x.timely()) {
		y, items := x.at(k)
		if c := x.classOf(items); y.left(now) < x.behind+x.until[c]+x.classes[c].least {
			return true
		}
	}
	return false
}

// growOverlap forms the batches that begin with a task, beside what is under way on a machine. Such a batch works as
// long as it would alone: that it runs longer costs nobody time. What it delays counts as what others block does.
// What is left waits for another machine in any case, since none becomes free with this batch.
func (r *Rule) growOverlap(v *route.View, best *overlapping, w *way, m int32, first int) {
	x, o := w.stage, w.option
	sum, items, long := newTally(), 0, 1.0
	device := r.machines.groups[w.group].device
	for k := first; k < min(first+overlapTasks, x.timely()); k++ {
		y, more := x.at(k)
		if items += more; items > o.limit {
			return
		}
		if x.mixed && x.long {
			if f := v.Fleet.Stretch(o.variant, device, x.differing[k].length); k == first || f > long {
				long = f
			}
		}
		t, delay := o.overlapped(items, long, r.underway)
		seconds := y.left(v.Now)
		cost, inTime := r.costOfDelay(delay)
		if !inTime || t > min(sum.tightest, seconds) {
			return
		}
		alone := false
		if x.mixed {
			task := v.Fleet.Task(y.ref)
			if alone = task.Isolated(); !o.accepts(v.Fleet, task) || alone && k > first {
				return
			}
		}
		c, due := x.classOf(more), y.dueIn(v.Now)
		second, short := noSecond, 0.0
		if x.mixed {
			second, short = int(x.differing[k].second), x.fallsShort(w.app, x.firstOf(o), &x.differing[k], t)
		}
		left := x.leftFor(w.app, c, second, due, x.waitFor(c, math.Inf(1)), y.part, long)
		reward := x.reward(w.app, x.firstOf(o), c, second, y.part, due, t) - short
		sum.add(reward, left, x.lossOf(o, second, y.part), seconds)
		works := o.stretched(o.even[items], long)
		gain := w.gain(&sum, works, t, cost)
		if score := w.score(gain, works); gain >= 0 && (best.n == 0 || score > best.score) {
			*best = overlapping{batch{
				option: o, first: first, n: sum.n, items: items, gain: gain, price: w.price, score: score,
			}, m}
		}
		if alone {
			return
		}
	}
}

// overlapped returns how long a batch of so many items, stretched by a factor, takes beside what is under way, and by
// how much it delays that.
func (o *option) overlapped(items int, long float64, under []underway) (takes, delay float64) {
	rest := 0.0
	for k := range under {
		rest = max(rest, under[k].rest)
	}
	t, d := fleet.Overlap(seconds(o.stretched(o.even[items], long)), seconds(o.stretched(o.together[items], long)),
		seconds(rest))
	return t.Seconds(), d.Seconds()
}

func seconds(s float64) time.Duration { return time.Duration(s * 1e9) }

// underway is a batch that runs.
type underway struct {
	stage serving.StageID
	tasks int
	rest  float64 // s that it still takes
	slack float64 // s by which it may end later, so that all of its tasks are in time at its stage
	left  float64 // s that the query with the least time has left then
}

// roomToOverlap returns the machine of a group on which a batch of a stage can begin beside those of other stages, and
// which has most time for that; -1 where there is none. What it runs is under way then.
func (r *Rule) roomToOverlap(v *route.View, g int, own *stage) (best int32) {
	best = -1
	most := math.Inf(-1)
	for _, m := range r.machines.groups[g].machines {
		x := &r.machines.list[m]
		if x.running != x.slots || x.queued() {
			continue
		}
		r.others = r.others[:0]
		slack := math.Inf(1)
		for _, i := range x.instances {
			for k := range i.Running() {
				y := newUnderway(v, i.Stage(), i.Batch(k))
				r.others = append(r.others, y)
				if slack = min(slack, y.slack); y.stage == own.id {
					slack = math.Inf(-1)
				}
			}
		}
		if slack > most {
			best, most = m, slack
			r.underway, r.others = r.others, r.underway
		}
	}
	return best
}

func newUnderway(v *route.View, s serving.StageID, b fleet.Batch) underway {
	end, due := serving.Never, serving.Never
	for ref := b.Head; ref != fleet.Nil; ref = v.Fleet.Next(ref) {
		t := v.Fleet.Task(ref)
		end, due = min(end, t.LatestEnd()), min(due, t.Due())
	}
	ends := max(b.Expected, v.Now)
	return underway{stage: s, tasks: b.Tasks, rest: ends.Sub(v.Now).Seconds(), slack: end.Sub(ends).Seconds(),
		left: due.Sub(ends).Seconds()}
}

// costOfDelay returns what is lost at later stages if all that is under way ends later, and whether all of it is in
// time still.
func (r *Rule) costOfDelay(delay float64) (cost float64, inTime bool) {
	for k := range r.underway {
		y := &r.underway[k]
		if delay > y.slack {
			return 0, false
		}
		if x := &r.stages[y.stage]; len(x.next) > 0 {
			a := &r.apps[x.app]
			cost += float64(y.tasks) * max(x.brings(a, y.left)-x.brings(a, y.left-delay), 0)
		}
	}
	return cost, true
}

// queued reports whether tasks wait on a machine: they have been assigned in this call, or its batcher holds them.
func (x *machine) queued() bool {
	for _, i := range x.instances {
		if i.Queue().Len() > 0 {
			return true
		}
	}
	return false
}

// startOverlap begins a batch beside others, and reports whether it can.
func (r *Rule) startOverlap(v *route.View, x *stage, b *overlapping) bool {
	m := &r.machines.list[b.machine]
	i := m.instances[b.option.position]
	if !i.RoomToOverlap() {
		return false
	}
	v.Overlap(i)
	x.give(v, &b.batch, i)
	if r.watch != nil {
		r.beganAlone(i, x, &b.batch, false, true)
	}
	x.forget()
	r.machines.set(b.machine, m.running+1)
	r.machines.started = append(r.machines.started, b.machine)
	return true
}
