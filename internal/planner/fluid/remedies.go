package fluid

import (
	"math"
	"slices"
	"sort"

	"github.com/sluice-serving/sluice/internal/planner/diagnosis"
	"github.com/sluice-serving/sluice/serving"
)

// addMachines finds the fewest added machines of each device type, and the cheapest mix where that costs less.
func (d *diagnoser) addMachines() {
	var singles []diagnosis.Remedy
	types := len(d.Request.Spec.DeviceTypes)
	for t := range types {
		if d.Request.Spec.DeviceTypes[t].Part {
			continue
		}
		at := func(n int) *diagnosis.Change {
			x := &diagnosis.Change{Add: make([]int, types)}
			x.Add[t] = n
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
			remedy := d.machines(at(n).Add)
			remedy.Proven = n == least
			singles = append(singles, remedy)
		}
	}
	var mix diagnosis.Remedy
	if x := (&diagnosis.Change{}); types > 1 && d.mix(x) {
		mix = d.machines(x.Add)
	}
	d.FoundMachines(singles, mix)
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

// machines is the remedy of machines added by DeviceTypeID to those that can be used.
func (d *diagnoser) machines(add []int) (out diagnosis.Remedy) {
	for t, n := range add {
		if n == 0 {
			continue
		}
		id := serving.DeviceTypeID(t)
		all := d.usable(id) + n
		if more := all - d.listed[t]; more > 0 {
			out.Add = append(out.Add, diagnosis.Addition{Device: id, Workers: more})
		}
		if x := &d.Request.Spec.DeviceTypes[t]; x.Tenure == serving.Rented && x.MaxMachines > 0 && all > x.MaxMachines {
			out.Most = append(out.Most, diagnosis.Addition{Device: id, Workers: all})
		}
		out.CostPerHour += float64(n) * d.Request.Price(id)
	}
	return out
}

// mix adds to a change the cheapest machines of any types with which it is enough; of equal ones the fewest. It tells
// whether there are such.
func (d *diagnoser) mix(x *diagnosis.Change) bool {
	m := d.problem(x)
	if !m.servesAll() {
		return false
	}
	more := m.missing()
	if more == nil {
		more = make(counts, len(m.kinds)) // the budget or memory is what is missing
	}
	x.Add = make([]int, len(d.Request.Spec.DeviceTypes))
	for range mostTried {
		for k := range more {
			x.Add[m.kinds[k].device] = more[k]
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
	for a := range d.Request.Spec.Apps {
		if x := &d.Request.Spec.Apps[a]; !x.Closed && x.MaxInstances > 0 {
			limited = append(limited, serving.AppID(a))
		}
	}
	machines := 0
	for t := range d.listed {
		machines += d.usable(serving.DeviceTypeID(t))
	}
	most := make([]int, len(d.Request.Spec.Apps))
	with := func() *diagnosis.Change {
		return d.Altered(func(apps []serving.App) {
			for a := range apps {
				if most[a] > 0 {
					apps[a].MaxInstances = most[a]
				}
			}
		})
	}
	least := func(a serving.AppID) int {
		own := d.Request.Spec.Apps[a].MaxInstances
		n := sort.Search(machines-own, func(n int) bool {
			most[a] = own + n
			return d.enough(with())
		})
		most[a] = own + n
		return most[a]
	}
	alone := false
	for _, a := range limited {
		if own := d.Request.Spec.Apps[a].MaxInstances; own < machines {
			if most[a] = machines; d.enough(with()) {
				alone = true
				d.Found(diagnosis.Remedy{Instances: []diagnosis.Instances{{App: a, To: least(a)}}})
			}
			most[a] = 0
		}
	}
	if alone || len(limited) < 2 {
		return
	}
	for _, a := range limited {
		most[a] = max(machines, d.Request.Spec.Apps[a].MaxInstances)
	}
	if !d.enough(with()) {
		return
	}
	var remedy diagnosis.Remedy
	for _, a := range limited {
		if own := d.Request.Spec.Apps[a].MaxInstances; own < machines && least(a) > own {
			remedy.Instances = append(remedy.Instances, diagnosis.Instances{App: a, To: most[a]})
		}
	}
	d.Found(remedy)
}

// raiseBudget finds the budget that pays for enough of the machines that can be rented, or of those that are listed if
// more of them could be rented.
func (d *diagnoser) raiseBudget() {
	if math.IsInf(d.problem(&diagnosis.Change{}).limited(), 1) {
		return
	}
	for _, add := range [][]int{nil, d.unrented()} {
		x := &diagnosis.Change{Add: add, Budget: unlimited}
		n, ok := d.pool(x)
		if !ok {
			continue
		}
		x.Budget = inCents(d.problem(x).cost(n))
		if d.enough(x) {
			remedy := diagnosis.Remedy{Budget: x.Budget}
			for t, k := range add {
				if k > 0 {
					remedy.Most = append(remedy.Most, diagnosis.Addition{
						Device: serving.DeviceTypeID(t), Workers: d.listed[t],
					})
				}
			}
			d.Found(remedy)
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

// addMemory finds the least memory that is enough of device types whose machines do not hold everything.
func (d *diagnoser) addMemory() {
	if !d.possible(&diagnosis.Change{}) {
		return
	}
	m := d.problem(&diagnosis.Change{})
	var crowded []serving.DeviceTypeID
	for k := range m.kinds {
		if m.crowded(k) && m.kinds[k].most > 0 {
			crowded = append(crowded, m.kinds[k].device)
		}
	}
	d.AddMemory(crowded)
}

// lowerTargets finds for each app with a target the highest that can be kept while the others keep theirs.
func (d *diagnoser) lowerTargets() {
	if d.untargeted {
		return
	}
	for a := range d.Request.Spec.Apps {
		own := d.Request.Spec.Apps[a].AccuracyTarget
		if own <= 0 || d.Request.Spec.Apps[a].Closed {
			continue
		}
		to := func(factor float64) float64 { return math.Floor(own/factor*1e4) / 1e4 }
		with := func(factor float64) *diagnosis.Change {
			return d.Altered(func(apps []serving.App) { apps[a].AccuracyTarget = to(factor) })
		}
		if factor, ok := d.Smallest(mostLowered, true, with); ok {
			d.Found(diagnosis.Remedy{Targets: []diagnosis.Floor{{App: serving.AppID(a), To: to(factor)}}})
		}
	}
}

// mostLowered is the largest factor by which a target is lowered.
const mostLowered = 8

// lessDemand finds the most that each app with a bottleneck may ask for while all others get their demand.
func (d *diagnoser) lessDemand() {
	if !d.untargeted {
		return
	}
	for _, a := range d.Narrow() {
		if int(a) >= len(d.Request.Rates) || d.Request.Rates[a] <= 0 {
			continue
		}
		with := func(factor float64) *diagnosis.Change { return &diagnosis.Change{Rates: d.times(1/factor, a)} }
		if factor, ok := d.Smallest(farMultiple, true, with); ok {
			d.Found(diagnosis.Remedy{Demand: []diagnosis.Demand{{App: a, To: d.Request.Rates[a] / factor}}})
		}
	}
}

// combine tries changes of several kinds where no one kind is enough: for stages that nothing serves lower floors where
// these are enough and longer objectives elsewhere, and machines with the budget that they take.
func (d *diagnoser) combine() {
	if len(d.Out.Remedies) > 0 {
		return
	}
	remedy, x, ok := d.Servable()
	if !ok {
		return
	}
	if len(d.Out.Unserved) > 0 && d.enough(x) {
		d.Found(remedy)
		return
	}
	x.Budget = unlimited
	if !d.mix(x) {
		return
	}
	more := d.machines(x.Add)
	remedy.Add, remedy.Most, remedy.CostPerHour = more.Add, more.Most, more.CostPerHour
	if !math.IsInf(d.problem(&diagnosis.Change{}).limited(), 1) {
		if n, ok := d.pool(x); ok {
			remedy.Budget = inCents(d.problem(x).cost(n))
		}
	}
	d.Found(remedy)
}

// inCents rounds money up to cents.
func inCents(dollars float64) float64 { return math.Ceil(100*dollars-1e-6) / 100 }
