package fluid

import (
	"cmp"
	"slices"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// plan makes the plan of sites with machines: on each machine one instance of every stage that it holds a variant of.
// They take turns.
func (m *problem) plan(sites []site, now *running) *plan.Plan {
	out := m.r.NewPlan("fluid")
	rates := m.demand()
	p := m.newProgram(sites)
	p.solve(rates)
	f := p.flows()
	alike, n := make([][]plan.Instance, len(sites)), 0
	for i := range sites {
		alike[i] = m.instances(&sites[i], f.items[i], f.time[i])
		n += len(alike[i]) * len(sites[i].workers)
	}
	out.Instances = make([]plan.Instance, 0, n)
	for i := range sites {
		for _, w := range sites[i].workers {
			m.place(out, alike[i], w, now)
		}
	}
	m.share(out)
	out.Sort()
	out.Loads, _ = m.loads(sites, now)
	out.Forecast.CostPerHour = m.r.CostPerHour(out.Instances)
	m.describe(out, sites, f)
	return out
}

// instances returns what each machine of a site runs, by stage. items and time are those of the site, by option.
func (m *problem) instances(s *site, items, time []float64) (out []plan.Instance) {
	k := &m.kinds[s.kind]
	of := make([][]int, len(m.stages)) // by stage: the options that are held
	for j, holds := range s.holds {
		if id := k.options[j].stage; holds {
			of[id] = append(of[id], j)
		}
	}
	for st := range of {
		if len(of[st]) == 0 {
			continue
		}
		// What the program spends most time on is loaded first; then the usable and accurate.
		slices.SortStableFunc(of[st], func(a, b int) int {
			x, y := &k.options[a], &k.options[b]
			if (x.rates != nil) != (y.rates != nil) {
				return cmp.Compare(min(len(y.rates), 1), min(len(x.rates), 1))
			}
			return cmp.Or(cmp.Compare(time[b], time[a]), cmp.Compare(x.loss, y.loss))
		})
		first := &k.options[of[st][0]]
		i := plan.Instance{Stage: serving.StageID(st), TimeShared: true, Slots: first.slots}
		for _, j := range of[st] {
			i.Variants = append(i.Variants, plan.Variant{Variant: k.options[j].variant, Limit: k.options[j].limit})
			i.Share += items[j] / s.count
		}
		run := m.believed.Latency(first.variant, k.device, first.limit, first.slots)
		i.BatchTimeout = max(m.stages[st].within-run, 0)
		out = append(out, i)
	}
	return out
}

// place adds the instances of a machine to a plan: copies of those of its site.
func (m *problem) place(out *plan.Plan, alike []plan.Instance, w serving.WorkerID, now *running) {
	taken, variants := make([]int32, 0, len(alike)+len(now.byPlace[w])), 0
	for _, i := range now.byPlace[w] {
		taken = append(taken, i.Key.Ordinal)
	}
	for k := range alike {
		variants += len(alike[k].Variants)
	}
	memory := make([]plan.Variant, 0, variants)
	for k := range alike {
		i := alike[k]
		i.Worker = w
		from := len(memory)
		memory = append(memory, i.Variants...)
		i.Variants = memory[from:len(memory):len(memory)]
		i.Place, taken = m.placeOf(i.Stage, w, taken, now)
		out.Instances = append(out.Instances, i)
	}
}

// placeOf returns the place of a stage on a machine: that of its running instance, or else the stage's own number, or
// the lowest free one behind all stages.
func (m *problem) placeOf(s serving.StageID, w serving.WorkerID, taken []int32, now *running) (int32, []int32) {
	for _, i := range now.byPlace[w] {
		if i.Stage == s && i.Cores == 0 {
			return i.Key.Ordinal, taken
		}
	}
	place := int32(s) + 1
	for slices.Contains(taken, place) {
		place = max(place, int32(len(m.stages))) + 1
	}
	return place, append(taken, place)
}

// share turns the items/s of the instances into shares of their stages. Stages that the program does not use are
// shared evenly.
func (m *problem) share(out *plan.Plan) {
	total, count := make([]float64, len(m.stages)), make([]float64, len(m.stages))
	for n := range out.Instances {
		total[out.Instances[n].Stage] += out.Instances[n].Share
		count[out.Instances[n].Stage]++
	}
	for n := range out.Instances {
		i := &out.Instances[n]
		if total[i.Stage] > 0 {
			i.Share /= total[i.Stage]
		} else {
			i.Share = 1 / count[i.Stage]
		}
	}
}

// mostMultiple bounds the multiple of the demand that a plan says it carries.
const mostMultiple = 100

// describe fills in what the plan carries and leaves out.
func (m *problem) describe(out *plan.Plan, sites []site, f *flows) {
	apps := len(m.apps)
	out.Demand, out.Capacity = make([]float64, apps), make([]float64, apps)
	shed, sheds := make([]float64, apps), false
	for a := range m.apps {
		if !m.apps[a].closed {
			out.Demand[a] = m.apps[a].rate
		}
		out.Mixes = append(out.Mixes, *m.r.Mix(serving.AppID(a)))
	}
	var accuracy, queries, worth, value float64
	for a := range m.apps {
		x := &m.apps[a]
		out.Capacity[a] = f.served[a]
		if missing := out.Demand[a] - f.served[a]; missing > lostTolerance*out.Demand[a] {
			shed[a], sheds = missing, true
		}
		right := m.spec.BestAccuracy(serving.AppID(a)) * (1 - f.loss[a])
		out.Forecast.Accurate = append(out.Forecast.Accurate, right)
		accuracy += f.served[a] * right
		queries += f.served[a]
		worth += m.queryValue(a) * out.Demand[a]
		value += f.served[a] * (m.queryValue(a) - x.weight*f.loss[a])
	}
	if sheds {
		out.Shed = shed
	} else if by := m.multiple(sites, out.Demand, mostMultiple); by > 1 {
		for a := range out.Capacity {
			out.Capacity[a] *= by
		}
	}
	for a := range out.Capacity {
		out.Forecast.Throughput += out.Capacity[a]
	}
	if queries > 0 {
		out.Forecast.Accuracy = accuracy / queries
	}
	m.prove(out, sites, value, worth)
	if sheds {
		m.findShortage(out)
	}
	// Queries that are too large for any machine are refused beside what is planned for. The rates that plans are
	// compared with have them.
	for a := range m.apps {
		if kept := 1 - m.apps[a].lost; kept < 1 {
			if out.TooLarge == nil {
				out.TooLarge = make([]float64, apps)
			}
			out.TooLarge[a] = m.apps[a].lost
			out.Demand[a] /= kept
			out.Capacity[a] /= kept
			shed[a] /= kept
		}
	}
}

// lostTolerance is the part of a demand that counts as rounding.
const lostTolerance = 1e-5

// prove fills in the bound: the rent of fractions of machines, or the worth of what machines with room for everything
// serve, relative to serving it all with the best variants.
func (m *problem) prove(out *plan.Plan, sites []site, value, worth float64) {
	if m.rents() && out.Shed == nil {
		if _, cost, full := m.newMarket(1).relaxed(); full {
			cost = max(cost, m.leastCost())
			rent := out.Forecast.CostPerHour
			if cost > rent*(1+servedTolerance) {
				return // machines that miss a target by little, or batches larger than the program forms, may cost less
			}
			out.Bound, out.Proven, out.BoundsCost = cost, true, true
			out.Gap = (rent - min(cost, rent)) / max(rent, 1e-9)
		}
		return
	}
	used := make(counts, len(m.kinds))
	for i := range sites {
		used[sites[i].kind] += len(sites[i].workers)
	}
	if worth > 0 {
		value /= worth
		p := m.newProgram(m.whole(used))
		out.Bound, out.Proven = max(p.solve(out.Demand), value), true
		out.Gap = (out.Bound - value) / max(value, 1e-9)
	}
}

// findShortage fills in how many more machines serve all of the demand.
func (m *problem) findShortage(out *plan.Plan) {
	n := m.missing()
	if n == nil {
		return
	}
	short := make([]int, len(m.spec.DeviceTypes))
	for k := range n {
		short[m.kinds[k].device] = n[k]
	}
	out.Shortage = short
}

// missing is how many machines more of each kind serve all of the demand: the fewest dollars' worth, or the fewest. It
// is nil where no number does, and where none is missing.
func (m *problem) missing() counts {
	more := *m
	more.kinds = slices.Clone(m.kinds)
	base := make(counts, len(m.kinds))
	priced := slices.ContainsFunc(m.kinds, func(k kind) bool { return m.r.Price(k.device) > 0 })
	for k := range more.kinds {
		x := &more.kinds[k]
		base[k] = m.kinds[k].most
		x.rented, x.price, x.most = true, 1, mostMore
		if priced {
			x.price = m.r.Price(x.device)
		}
	}
	market := more.newMarket(1)
	market.base = base
	n := market.cheapest()
	if !market.carries(n) || slices.Max(n) == 0 {
		return nil
	}
	return n
}

// mostMore is how many more machines of a kind a shortage may ask for.
const mostMore = 100_000
