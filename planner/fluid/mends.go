package fluid

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/sluice-serving/sluice/planner/capacity"
	"github.com/sluice-serving/sluice/serving"
)

func (d *diagnoser) found(m capacity.Mend) { d.out.Mends = append(d.out.Mends, m) }

// addMachines finds the fewest added machines of each device type, and the cheapest mix where that costs less.
func (d *diagnoser) addMachines() {
	var singles []capacity.Mend
	types := len(d.r.Spec.DeviceTypes)
	for t := range types {
		if d.r.Spec.DeviceTypes[t].Part {
			continue
		}
		at := func(n int) *change {
			x := &change{add: make([]int, types)}
			x.add[t] = n
			return x
		}
		n, ok := fewest(func(n int) bool { return d.possible(at(n)) })
		if !ok {
			continue
		}
		least := n
		for ; n-least < mostTried && !d.enough(at(n)); n = max(n+1, n+n/32) {
			continue
		}
		if n-least < mostTried {
			mend := d.machines(at(n).add)
			mend.Proven = n == least
			singles = append(singles, mend)
		}
	}
	order(singles)
	if x := (&change{}); types > 1 && d.mix(x) {
		mix := d.machines(x.add)
		if len(mix.Add)+len(mix.Most) > 1 &&
			(len(singles) == 0 || mix.CostPerHour < singles[0].CostPerHour-centTolerance) {
			singles = slices.Insert(singles, 0, mix)
		}
	}
	d.out.Mends = append(d.out.Mends, singles...)
}

// mostTried is how many machines more than the program asks for are tried where memory asks for more.
const mostTried = 32

// fewest returns the least number from 1 to mostMore that is ok.
func fewest(ok func(n int) bool) (int, bool) {
	low, high := 0, 1
	for ; !ok(high); high *= 2 {
		if low = high; high > mostMore {
			return 0, false
		}
	}
	for high-low > 1 {
		if middle := (low + high) / 2; ok(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high, true
}

// machines is the mend of machines added by DeviceTypeID to those that can be used.
func (d *diagnoser) machines(add []int) (out capacity.Mend) {
	for t, n := range add {
		if n == 0 {
			continue
		}
		id := serving.DeviceTypeID(t)
		all := d.usable(id) + n
		if more := all - d.listed[t]; more > 0 {
			out.Add = append(out.Add, capacity.Addition{Device: id, Workers: more})
		}
		if x := &d.r.Spec.DeviceTypes[t]; x.Tenure == serving.Rented && x.MaxMachines > 0 && all > x.MaxMachines {
			out.Most = append(out.Most, capacity.Addition{Device: id, Workers: all})
		}
		out.CostPerHour += float64(n) * d.r.Price(id)
	}
	return out
}

// mix adds to a change the cheapest machines of any types with which it is enough; of equal ones the fewest. It tells
// whether there are such.
func (d *diagnoser) mix(x *change) bool {
	m := d.problem(x)
	if !m.servesAll() {
		return false
	}
	more := m.missing()
	if more == nil {
		more = make(counts, len(m.kinds)) // the budget or memory is what is missing
	}
	x.add = make([]int, len(d.r.Spec.DeviceTypes))
	for range mostTried {
		for k := range more {
			x.add[m.kinds[k].device] = more[k]
		}
		if d.enough(x) {
			return true
		}
		for k := range more {
			more[k] += max(more[k]/16, 1)
		}
	}
	return false
}

// raiseMost finds for each app with a most number of instances the least number that is enough while the others keep
// theirs; if no app alone helps, numbers for all of them.
func (d *diagnoser) raiseMost() {
	var limited []serving.AppID
	for a := range d.r.Spec.Apps {
		if x := &d.r.Spec.Apps[a]; !x.Closed && x.MaxInstances > 0 {
			limited = append(limited, serving.AppID(a))
		}
	}
	machines := 0
	for t := range d.listed {
		machines += d.usable(serving.DeviceTypeID(t))
	}
	most := make([]int, len(d.r.Spec.Apps))
	with := func() *change {
		return d.altered(func(apps []serving.App) {
			for a := range apps {
				if most[a] > 0 {
					apps[a].MaxInstances = most[a]
				}
			}
		})
	}
	least := func(a serving.AppID) int {
		own := d.r.Spec.Apps[a].MaxInstances
		n := sort.Search(machines-own, func(n int) bool {
			most[a] = own + n
			return d.enough(with())
		})
		most[a] = own + n
		return most[a]
	}
	alone := false
	for _, a := range limited {
		if own := d.r.Spec.Apps[a].MaxInstances; own < machines {
			if most[a] = machines; d.enough(with()) {
				alone = true
				d.found(capacity.Mend{Instances: []capacity.Instances{{App: a, To: least(a)}}})
			}
			most[a] = 0
		}
	}
	if alone || len(limited) < 2 {
		return
	}
	for _, a := range limited {
		most[a] = max(machines, d.r.Spec.Apps[a].MaxInstances)
	}
	if !d.enough(with()) {
		return
	}
	var mend capacity.Mend
	for _, a := range limited {
		if own := d.r.Spec.Apps[a].MaxInstances; own < machines && least(a) > own {
			mend.Instances = append(mend.Instances, capacity.Instances{App: a, To: most[a]})
		}
	}
	d.found(mend)
}

// raiseBudget finds the budget that pays for enough of the machines that can be rented, or of those that are listed if
// more of them could be rented.
func (d *diagnoser) raiseBudget() {
	if math.IsInf(d.problem(&change{}).limited(), 1) {
		return
	}
	for _, add := range [][]int{nil, d.unrented()} {
		x := &change{add: add, budget: unlimited}
		n, ok := d.pool(x)
		if !ok {
			continue
		}
		x.budget = inCents(d.problem(x).cost(n))
		if d.enough(x) {
			mend := capacity.Mend{Budget: x.budget}
			for t, k := range add {
				if k > 0 {
					mend.Most = append(mend.Most, capacity.Addition{
						Device: serving.DeviceTypeID(t), Workers: d.listed[t],
					})
				}
			}
			d.found(mend)
			return
		}
	}
}

// unrented is, by DeviceTypeID, how many listed machines are more than can be rented; nil for none.
func (d *diagnoser) unrented() []int {
	out := make([]int, len(d.listed))
	for t := range out {
		out[t] = d.listed[t] - d.usable(serving.DeviceTypeID(t))
	}
	if slices.Max(out) <= 0 {
		return nil
	}
	return out
}

// mostMemory is the largest factor on the memory of machines that is considered.
const mostMemory = 64

// addMemory finds the least memory of a device type that is enough, or else of all types by the same factor.
func (d *diagnoser) addMemory() {
	if !d.possible(&change{}) {
		return
	}
	m := d.problem(&change{})
	var sets [][]serving.DeviceTypeID
	var all []serving.DeviceTypeID
	for k := range m.kinds {
		if m.crowded(k) && m.kinds[k].most > 0 {
			all = append(all, m.kinds[k].device)
			sets = append(sets, []serving.DeviceTypeID{m.kinds[k].device})
		}
	}
	if len(all) > 1 {
		sets = append(sets, all)
	}
	alone := false
	for _, of := range sets {
		if len(of) > 1 && alone {
			break
		}
		with := func(factor float64) (*change, []capacity.Memory) {
			spec := *d.r.Spec
			spec.DeviceTypes = slices.Clone(spec.DeviceTypes)
			var out []capacity.Memory
			for _, t := range of {
				x := &spec.DeviceTypes[t].MemoryBytes
				*x = (int64(factor*float64(*x)) + mebibyte - 1) / mebibyte * mebibyte
				out = append(out, capacity.Memory{Device: t, To: *x})
			}
			return &change{spec: &spec}, out
		}
		enough := func(factor float64) bool { x, _ := with(factor); return d.enough(x) }
		if factor, ok := smallest(mostMemory, enough, enough); ok {
			alone = true
			_, to := with(factor)
			d.found(capacity.Mend{Memory: to})
		}
	}
}

const mebibyte = 1 << 20

// lowerFloors finds for each app with a floor the highest lower one that is enough; if no app alone helps, such floors
// for all of them.
func (d *diagnoser) lowerFloors() {
	floors := make([]float64, len(d.r.Spec.Apps))
	var having []serving.AppID
	for a := range floors {
		if floors[a] = d.r.Spec.Apps[a].Floor; floors[a] > 0 && !d.r.Spec.Apps[a].Closed {
			having = append(having, serving.AppID(a))
		}
	}
	alone := false
	for _, a := range having {
		if to, ok := d.lowerFloor(slices.Clone(floors), a); ok {
			alone = true
			d.found(capacity.Mend{Floors: []capacity.Floor{{App: a, To: to}}})
		}
	}
	if alone || len(having) < 2 {
		return
	}
	for _, a := range having {
		floors[a] = 0
	}
	if !d.enough(d.floored(floors)) {
		return
	}
	mend := capacity.Mend{}
	for _, a := range having {
		to, _ := d.lowerFloor(slices.Clone(floors), a)
		if floors[a] = to; to < d.r.Spec.Apps[a].Floor {
			mend.Floors = append(mend.Floors, capacity.Floor{App: a, To: to})
		}
	}
	d.found(mend)
}

// lowerFloor finds the highest floor of an app that is enough beside those of others. Only accuracies of its variants
// make a difference. It changes floors.
func (d *diagnoser) lowerFloor(floors []float64, a serving.AppID) (float64, bool) {
	own := d.r.Spec.Apps[a].Floor
	steps := []float64{own}
	for _, s := range d.r.Spec.Apps[a].Stages {
		for _, v := range d.r.Spec.Stages[s].Variants {
			if x := d.r.Spec.Variants[v].Accuracy; x < own {
				steps = append(steps, x)
			}
		}
	}
	slices.SortFunc(steps, func(x, y float64) int { return cmp.Compare(y, x) })
	for _, to := range slices.Compact(steps) {
		if floors[a] = to; d.enough(d.floored(floors)) {
			return to, true
		}
	}
	return 0, false
}

// floored is a change of the floors, by AppID.
func (d *diagnoser) floored(floors []float64) *change {
	return d.altered(func(apps []serving.App) {
		for a := range apps {
			apps[a].Floor = floors[a]
		}
	})
}

// lowerTargets finds for each app with a target the highest that can be kept while the others keep theirs.
func (d *diagnoser) lowerTargets() {
	if d.untargeted {
		return
	}
	for a := range d.r.Spec.Apps {
		own := d.r.Spec.Apps[a].AccuracyTarget
		if own <= 0 || d.r.Spec.Apps[a].Closed {
			continue
		}
		to := func(factor float64) float64 { return math.Floor(own/factor*1e4) / 1e4 }
		with := func(factor float64) *change {
			return d.altered(func(apps []serving.App) { apps[a].AccuracyTarget = to(factor) })
		}
		factor, ok := smallest(mostLowered, func(x float64) bool { return d.possible(with(x)) },
			func(x float64) bool { return d.enough(with(x)) })
		if ok {
			d.found(capacity.Mend{Targets: []capacity.Floor{{App: serving.AppID(a), To: to(factor)}}})
		}
	}
}

const (
	// mostLowered is the largest factor by which a target is lowered.
	mostLowered = 8
	// mostStretched is the largest factor on an objective.
	mostStretched = 64
	// mostSearched is how many apps' objectives are searched one by one.
	mostSearched = 4
)

// lengthen finds for apps with bottlenecks the shortest longer objective that is enough; if no app alone helps, such
// objectives for all of them by the same factor.
func (d *diagnoser) lengthen() {
	narrow := d.narrow()
	var sets [][]serving.AppID
	for _, a := range narrow[:min(len(narrow), mostSearched)] {
		sets = append(sets, []serving.AppID{a})
	}
	if len(narrow) > 1 {
		sets = append(sets, narrow)
	}
	alone := false
	for _, of := range sets {
		if len(of) > 1 && alone {
			break
		}
		with := func(factor float64) *change { return d.longer(of, 0, factor) }
		factor, ok := smallest(mostStretched, func(x float64) bool { return d.possible(with(x)) },
			func(x float64) bool { return d.enough(with(x)) })
		if !ok {
			continue
		}
		alone = true
		mend := capacity.Mend{}
		for _, a := range of {
			mend.SLOs = append(mend.SLOs, capacity.Objective{App: a, To: with(factor).spec.Apps[a].SLO.Latency})
		}
		d.found(mend)
	}
}

// lessDemand finds the most that each app with a bottleneck may ask for while all others get their demand.
func (d *diagnoser) lessDemand() {
	if !d.untargeted {
		return
	}
	for _, a := range d.narrow() {
		if int(a) >= len(d.r.Rates) || d.r.Rates[a] <= 0 {
			continue
		}
		with := func(factor float64) *change { return &change{rates: d.times(1/factor, a)} }
		factor, ok := smallest(farMultiple, func(x float64) bool { return d.possible(with(x)) },
			func(x float64) bool { return d.enough(with(x)) })
		if ok {
			d.found(capacity.Mend{Demand: []capacity.Demand{{App: a, To: d.r.Rates[a] / factor}}})
		}
	}
}

// combine tries changes of several kinds where no one kind is enough: for stages that nothing serves lower floors where
// these are enough and longer objectives elsewhere, and machines with the budget that they take.
func (d *diagnoser) combine() {
	if len(d.out.Mends) > 0 {
		return
	}
	mend := capacity.Mend{}
	for _, u := range d.out.Unserved {
		switch {
		case u.Floor > 0:
			mend.Floors = lowest(mend.Floors, capacity.Floor{App: u.App, To: u.Floor})
		case u.SLO > 0:
			mend.SLOs = append(mend.SLOs, capacity.Objective{App: u.App, To: u.SLO})
		default:
			return
		}
	}
	x := d.altered(func(apps []serving.App) {
		for _, f := range mend.Floors {
			apps[f.App].Floor = f.To
		}
		for _, o := range mend.SLOs {
			apps[o.App].SLO.Latency = max(apps[o.App].SLO.Latency, o.To)
		}
	})
	if len(d.out.Unserved) > 0 && d.enough(x) {
		d.found(mend)
		return
	}
	x.budget = unlimited
	if !d.mix(x) {
		return
	}
	more := d.machines(x.add)
	mend.Add, mend.Most, mend.CostPerHour = more.Add, more.Most, more.CostPerHour
	if !math.IsInf(d.problem(&change{}).limited(), 1) {
		if n, ok := d.pool(x); ok {
			mend.Budget = inCents(d.problem(x).cost(n))
		}
	}
	d.found(mend)
}

// inCents rounds money up to cents.
func inCents(dollars float64) float64 { return math.Ceil(100*dollars-1e-6) / 100 }

// lowest adds a floor to a list, or lowers that of the same app.
func lowest(list []capacity.Floor, f capacity.Floor) []capacity.Floor {
	for k := range list {
		if list[k].App == f.App {
			list[k].To = min(list[k].To, f.To)
			return list
		}
	}
	return append(list, f)
}
