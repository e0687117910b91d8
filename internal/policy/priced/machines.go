package priced

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/pq"
	"github.com/sluice-serving/sluice/policy/route"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// machine runs so many batches at once as it has slots: the instances that take turns on a worker, or one instance with
// a part of a worker for itself.
type machine struct {
	group     int32
	instances []*fleet.Instance // by option.position
	slots     int
	running   int // batches, those that begin in this call included
}

// group is machines that are alike: of one type, with the same variants resident.
type group struct {
	key      string // of its machines
	device   serving.DeviceTypeID
	slots    int
	options  []option          // by stage; of each those last that are pinned
	of       [][3]int32        // by StageID: where its options begin, those that are pinned, and where they end
	stages   []serving.StageID // that have options
	machines []int32
	first    int      // position of machines[0] in the bits below
	idle     []uint64 // a bit for each of machines: it has a free slot
	free     int      // free slots
	ends     pq.Heap  // by place among machines: believed end of the first of its batches
	dual     float64  // price by the program; 0 where time is not scarce
	price    float64  // of a second of a slot, in queries served at best accuracy; at least least
	least    float64  // a price that decides only between batches that are worth the same
	blocked  []blocked
	lateFrom serving.Time // from when on late tasks may take a machine of it though others are busy

	// around are its prices by demand around the expected one.
	around [len(around)]float64
}

// option is a variant that a group's machines can run.
type option struct {
	stage    serving.StageID
	variant  serving.VariantID
	position int32     // of its instance on a machine
	limit    int       // items, at least 1
	pinned   bool      // below its app's floor: only for tasks that are pinned to it
	quality  float64   // accuracy relative to that of the stage's best variant
	seconds  []float64 // by items, up to limit
	even     []float64 // the same for items that all have the mean length
	base     float64   // s of a batch that do not grow with the length of its items
	overhead float64   // s of those that a batch has once, however many runs it takes
	pads     bool      // its batches are padded to the longest query
	together []float64 // the same beside as many others as the machine has slots; nil where it has no other instance
}

// serving returns the options of a stage, but for those that are pinned. They are the group's own.
func (x *group) serving(s *stage) []option { return x.options[x.of[s.id][0]:x.of[s.id][1]] }

// holding returns all options of a stage.
func (x *group) holding(s *stage) []option { return x.options[x.of[s.id][0]:x.of[s.id][2]] }

// fastest is the least time that a task of so many items takes on the group's machines, in s; infinite where none
// serves it.
func (x *group) fastest(s *stage, items int) float64 {
	least := math.Inf(1)
	options := x.serving(s)
	for k := range options {
		if o := &options[k]; items <= o.limit {
			least = min(least, o.seconds[items])
		}
	}
	return least
}

// fleetOfMachines is all machines that can run something, and which of them are free.
type fleetOfMachines struct {
	list    []machine
	of      []int32 // by instance ID - 1: its machine; -1 for none
	groups  []group
	slots   int      // of all
	free    int      // of them
	freeOf  []int32  // by StageID: free slots of the machines that serve it
	freeSet []uint64 // a bit for each group with a free slot
	blocked []int32  // groups with something in blocked
	started []int32  // machines that were given tasks in the last call, or held some back when they were read
	spare   []int32  // memory of started
	paces   []pace   // by DeviceTypeID
}

// build groups the instances that are ready into machines, and machines into groups.
func (f *fleetOfMachines) build(v *route.View) {
	spec := v.Fleet.Spec()
	before := f.groups
	*f = fleetOfMachines{started: f.started[:0], paces: f.paces, freeOf: make([]int32, len(spec.Stages))}
	for len(f.paces) < len(spec.DeviceTypes) {
		f.paces = append(f.paces, pace{})
	}
	shared := make(map[serving.WorkerID]int)
	for s := range spec.Stages {
		for _, i := range v.Fleet.Ready(serving.StageID(s)) {
			if i.Active() < 0 && !servesPinned(i) {
				continue
			}
			at := len(f.list)
			if i.TimeShared() {
				if known, ok := shared[i.Worker()]; ok {
					at = known
				} else {
					shared[i.Worker()] = at
				}
			}
			if at == len(f.list) {
				f.list = append(f.list, machine{})
			}
			f.list[at].instances = append(f.list[at].instances, i)
			for len(f.of) < int(i.ID()) {
				f.of = append(f.of, -1)
			}
			f.of[i.ID()-1] = int32(at)
		}
	}
	byKey := make(map[string]int32)
	var key []byte
	for m := range f.list {
		x := &f.list[m]
		slices.SortFunc(x.instances, func(a, b *fleet.Instance) int {
			return cmp.Or(cmp.Compare(a.Stage(), b.Stage()), cmp.Compare(a.ID(), b.ID()))
		})
		for _, i := range x.instances {
			x.slots = max(x.slots, i.Slots())
		}
		key = x.appendKey(key[:0])
		g, ok := byKey[string(key)]
		if !ok {
			g = int32(len(f.groups))
			byKey[string(key)] = g
			f.groups = append(f.groups, newGroup(v, x))
			f.groups[g].priceLike(before, string(key))
		}
		x.group = g
		f.groups[g].machines = append(f.groups[g].machines, int32(m))
	}
	f.renumber()
	f.freeSet = make([]uint64, (len(f.groups)+63)/64)
	for g := range f.groups {
		f.groups[g].idle = make([]uint64, (len(f.groups[g].machines)+63)/64)
		f.slots += f.groups[g].all()
	}
	for m := range f.list {
		f.read(int32(m), v.Now)
	}
}

// priceLike takes up the price of an earlier group: of the one whose machines held the same, or else of one of the same
// type. Prices settle over some updates, and a plan that changes little must not begin with none.
func (x *group) priceLike(before []group, key string) {
	x.key = key
	found := -1
	for g := range before {
		if y := &before[g]; y.device == x.device && (found < 0 || y.key == key) {
			found = g
		}
	}
	if found >= 0 {
		y := &before[found]
		x.dual, x.around, x.lateFrom = y.dual, y.around, y.lateFrom
	}
}

func servesPinned(i *fleet.Instance) bool {
	for k := range i.Variants() {
		if l := i.Variant(k); l.Warm && l.Wanted {
			return true
		}
	}
	return false
}

// renumber orders machines by group, so that a machine's place in its group is its number less the group's first.
func (f *fleetOfMachines) renumber() {
	order := make([]int32, 0, len(f.list))
	for g := range f.groups {
		f.groups[g].first = len(order)
		order = append(order, f.groups[g].machines...)
	}
	list, moved := make([]machine, len(order)), make([]int32, len(order))
	for to, from := range order {
		list[to], moved[from] = f.list[from], int32(to)
	}
	f.list = list
	for g := range f.groups {
		x := &f.groups[g]
		for k := range x.machines {
			x.machines[k] = int32(x.first + k)
		}
	}
	for i, m := range f.of {
		if m >= 0 {
			f.of[i] = moved[m]
		}
	}
}

// appendKey appends what makes machines alike. Which variant an instance would use by itself does not matter.
func (x *machine) appendKey(key []byte) []byte {
	var held []fleet.Loaded
	key = strconv.AppendInt(key, int64(x.instances[0].DeviceType()), 10)
	key = strconv.AppendInt(append(key, '/'), int64(x.slots), 10)
	for _, i := range x.instances {
		key = strconv.AppendInt(append(key, '|'), int64(i.Stage()), 10)
		held = held[:0]
		for k := range i.Variants() {
			if l := i.Variant(k); l.Warm && l.Wanted {
				held = append(held, l)
			}
		}
		slices.SortFunc(held, func(a, b fleet.Loaded) int { return cmp.Compare(a.Variant, b.Variant) })
		for _, l := range held {
			key = strconv.AppendInt(append(key, ' '), int64(l.Variant), 10)
			key = strconv.AppendInt(append(key, ':'), int64(l.Limit), 10)
		}
	}
	return key
}

func newGroup(v *route.View, x *machine) group {
	spec := v.Fleet.Spec()
	g := group{device: x.instances[0].DeviceType(), slots: x.slots, of: make([][3]int32, len(spec.Stages))}
	for at, i := range x.instances {
		s := i.Stage()
		best := spec.BestOfStage(s)
		for k := range i.Variants() {
			l := i.Variant(k)
			if !l.Warm || !l.Wanted {
				continue
			}
			o := option{
				stage: s, variant: l.Variant, position: int32(at), pinned: !l.Usable(), quality: 1,
				seconds: []float64{0}, even: []float64{0}, base: v.Fleet.StretchBase(l.Variant, g.device).Seconds(),
				overhead: v.Fleet.BatchOverhead(g.device).Seconds(), pads: spec.Variants[l.Variant].Pads,
			}
			if best > 0 {
				o.quality = spec.Variants[l.Variant].Accuracy / best
			}
			for n := 1; n <= l.Limit; n++ {
				d := v.Fleet.Latency(l.Variant, g.device, n, x.slots)
				if d == profile.Unknown {
					break
				}
				o.seconds = append(o.seconds, max(d.Seconds(), 1e-6))
				o.even = append(o.even, max(v.Fleet.EvenLatency(l.Variant, g.device, n, x.slots).Seconds(), 1e-6))
			}
			if i.TimeShared() && len(x.instances) > 1 {
				o.measureTogether(v, g.device, x.slots)
			}
			if o.limit = len(o.seconds) - 1; o.limit > 0 {
				g.options = append(g.options, o)
			}
		}
	}
	order := func(o *option) int {
		if o.pinned {
			return 2*int(o.stage) + 1
		}
		return 2 * int(o.stage)
	}
	slices.SortStableFunc(g.options, func(a, b option) int { return cmp.Compare(order(&a), order(&b)) })
	for k := range g.options {
		o := &g.options[k]
		y := &g.of[o.stage]
		if len(g.stages) == 0 || o.stage != g.stages[len(g.stages)-1] {
			g.stages = append(g.stages, o.stage)
			y[0], y[1] = int32(k), int32(k)
		}
		if y[2] = int32(k + 1); !o.pinned {
			y[1] = y[2]
		}
	}
	return g
}

// follow takes up which batches have ended, and whether those ordered in the last call have begun.
func (f *fleetOfMachines) follow(v *route.View) {
	again := f.started
	f.started = f.spare[:0]
	for _, m := range again {
		f.read(m, v.Now)
	}
	f.spare = again
	for _, b := range v.Finished() {
		if int(b.Instance) > len(f.of) || f.of[b.Instance-1] < 0 {
			continue
		}
		m := f.of[b.Instance-1]
		if !b.Overlaps {
			f.paces[f.groups[f.list[m].group].device].add(b.Took, b.Believed)
		}
		f.read(m, v.Now)
	}
}

// read counts a machine's batches anew.
func (f *fleetOfMachines) read(m int32, now serving.Time) {
	x := &f.list[m]
	running, end, second := 0, serving.Never, serving.Never
	held := false
	for _, i := range x.instances {
		running += i.Running()
		if i.Queue().Len() > 0 {
			running++ // its batcher holds a batch back
			held = true
		}
		for k := range i.Running() {
			if e := i.Batch(k).Expected; e < end {
				end, second = e, end
			} else {
				second = min(second, e)
			}
		}
	}
	if held {
		f.started = append(f.started, m) // no batch need end for them to go: they may be dropped, too
	}
	if running > x.slots {
		end = second // one began beside the other: two have to end
	}
	f.set(m, running)
	g := &f.groups[x.group]
	if end == serving.Never {
		g.ends.Remove(int(m) - g.first)
	} else {
		g.ends.Set(int(m)-g.first, int64(max(end, now)))
	}
}

// set records how many batches a machine runs.
func (f *fleetOfMachines) set(m int32, running int) {
	x := &f.list[m]
	g := &f.groups[x.group]
	place := int(m) - g.first
	was := 0
	if g.idle[place/64]&(1<<(place%64)) != 0 {
		was = max(x.slots-x.running, 0)
	}
	x.running = running
	is := max(x.slots-running, 0)
	f.addFree(x.group, is-was)
	if is > 0 {
		g.idle[place/64] |= 1 << (place % 64)
	} else {
		g.idle[place/64] &^= 1 << (place % 64)
	}
}

// addFree counts so many more free slots of a group's machines.
func (f *fleetOfMachines) addFree(g int32, n int) {
	if n == 0 {
		return
	}
	y := &f.groups[g]
	y.free += n
	f.free += n
	if bit := uint64(1) << (g % 64); y.free > 0 {
		f.freeSet[g/64] |= bit
	} else {
		f.freeSet[g/64] &^= bit
	}
	for _, s := range y.stages {
		f.freeOf[s] += int32(n)
	}
}

// take uses a slot of the first free machine of a group, so that the last ones stay free and can be given back. The
// batch is for the instance at a position. It returns nil where no such instance can begin one in this call: what is
// assigned to an instance in one call runs as one batch.
func (f *fleetOfMachines) take(g int, position int32, now serving.Time, seconds float64) *machine {
	x := &f.groups[g]
	for w, word := range x.idle {
		for ; word != 0; word &= word - 1 {
			m := int32(x.first + 64*w + bits.TrailingZeros64(word))
			if i := f.list[m].instances[position]; i.Queue().Len() > 0 || i.Running() >= i.Slots() {
				continue
			}
			f.set(m, f.list[m].running+1)
			f.started = append(f.started, m)
			end := int64(now.Add(time.Duration(seconds * 1e9)))
			place := int(m) - x.first
			if known, ok := x.ends.Key(place); !ok || end < known {
				x.ends.Set(place, end)
			}
			return &f.list[m]
		}
	}
	return nil
}

// freeFor reports whether some free machine serves a stage.
func (f *fleetOfMachines) freeFor(s *stage) bool { return f.freeOf[s.id] > 0 }

// all returns the slots of a group's machines.
func (x *group) all() int { return len(x.machines) * x.slots }
