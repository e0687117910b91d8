package fluid

import (
	"cmp"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/internal/algo/lp"
	"github.com/sluice-serving/sluice/serving"
)

// counts is how many machines of each kind are used, by index in problem.kinds.
type counts []int

// cost is the rent of machines, in $/h. Owned ones cost nothing.
func (m *problem) cost(n counts) (sum float64) {
	for k := range n {
		sum += float64(n[k]) * m.kinds[k].price
	}
	return sum
}

// all is all machines.
func (m *problem) all() counts {
	out := make(counts, len(m.kinds))
	for k := range out {
		out[k] = m.kinds[k].most
	}
	return out
}

// rents tells whether any machine is rented.
func (m *problem) rents() bool {
	return slices.ContainsFunc(m.kinds, func(k kind) bool { return k.rented })
}

// market answers which machines serve a demand, as far as the program knows, in which memory holds everything.
type market struct {
	m     *problem
	rates []float64 // by AppID, queries/s
	full  float64   // value of serving everything at its targets
	base  counts    // machines that are there beside those that are counted; nil for none
	cuts  []cut
}

// cut is a bound on what machines serve: value at some counts, and the prices of machines there. The value is concave
// in the counts.
type cut struct {
	value float64
	slope []float64 // by kind
	at    counts
}

// newMarket is for a multiple of the demand.
func (m *problem) newMarket(headroom float64) *market {
	x := &market{m: m}
	for a := range m.apps {
		rate := 0.0
		if !m.apps[a].closed && m.servedAnywhere(a) {
			rate = m.apps[a].rate * headroom
		}
		x.rates = append(x.rates, rate)
	}
	x.sum()
	return x
}

// sum adds up the rates.
func (x *market) sum() {
	x.full = 0
	for a, rate := range x.rates {
		x.full += x.m.apps[a].weight * rate
	}
}

// carried is newMarket for no more of the demand than all machines serve. Where limits on instances keep demand from
// being served, more machines would not help.
func (m *problem) carried(headroom float64) *market {
	x := m.newMarket(headroom)
	if !m.anyCapped() {
		return x
	}
	p := x.program(m.all())
	p.Solve(0)
	f := p.flows()
	for a := range x.rates {
		x.rates[a] = min(x.rates[a], f.served[a]*(1-servedTolerance))
	}
	x.sum()
	return x
}

// servedAnywhere tells whether each stage of an app has a variant on some machine.
func (m *problem) servedAnywhere(a int) bool {
	return !slices.ContainsFunc(m.spec.Apps[a].Stages, func(s serving.StageID) bool {
		return m.stages[s].fan > 0 && !m.serves(s)
	})
}

// whole returns a site for each kind that holds everything.
func (m *problem) whole(n counts) (out []site) {
	for k := range m.kinds {
		holds := make([]bool, len(m.kinds[k].options))
		for j := range holds {
			holds[j] = true
		}
		out = append(out, site{kind: k, count: float64(n[k]), holds: holds})
	}
	return out
}

// program makes the program in which only serving counts, at targets where there are some.
func (x *market) program(n counts) *program {
	if x.base != nil {
		n = slices.Clone(n)
		for k := range n {
			n[k] += x.base[k]
		}
	}
	p := x.m.newProgram(x.m.whole(n))
	for _, z := range p.column {
		p.Cost(z, 0)
	}
	for a := range p.served {
		for c, y := range p.served[a] {
			p.Cost(y, x.m.apps[a].weight)
			p.Upper(y, x.rates[a]*x.m.apps[a].classes[c].share)
		}
		if p.short[a] >= 0 {
			p.Cost(p.short[a], -x.m.apps[a].weight)
		}
	}
	return p
}

// value is what some machines serve, in weighted queries/s.
func (x *market) value(n counts) float64 {
	p := x.program(n)
	p.Solve(0)
	c := cut{value: p.Objective(), at: slices.Clone(n)}
	for k := range n {
		c.slope = append(c.slope, max(p.Dual(k), 0))
	}
	x.cuts = append(x.cuts, c)
	return c.value
}

// carries tells whether some machines serve everything at its targets.
func (x *market) carries(n counts) bool {
	if x.m.raised(n) != nil {
		return false
	}
	enough := x.full * (1 - servedTolerance)
	for i := range x.cuts {
		c := &x.cuts[i]
		most := c.value
		for k := range n {
			most += c.slope[k] * float64(n[k]-c.at[k])
		}
		if most < enough {
			return false
		}
	}
	return x.value(n) >= enough
}

// servedTolerance is the part of a demand that may be missing because of rounding.
const servedTolerance = 1e-6

// rentWeight is what all machines cost, relative to what serving everything is worth: little, so that rent only decides
// among what serves the same.
const rentWeight = 1e-4

// relaxed returns how many machines, in fractions, carry the demand at least cost, and that cost in $/h. full is false
// where even all machines do not carry it.
func (x *market) relaxed() (n []float64, cost float64, full bool) {
	p := x.program(x.m.all())
	top := 0.0
	for k := range x.m.kinds {
		top += x.m.kinds[k].price * float64(x.m.kinds[k].most)
	}
	column := make([]int, len(x.m.kinds))
	for k := range x.m.kinds {
		if column[k] = -1; x.m.kinds[k].rented {
			p.Limit(k, 0)
			if x.base != nil {
				p.Limit(k, float64(x.base[k]))
			}
			price := rentWeight * x.full * x.m.kinds[k].price / max(top, math.SmallestNonzeroFloat64)
			column[k] = p.Add(-price, float64(x.m.kinds[k].most), lp.Term{Row: k, Coef: -1})
		}
	}
	p.Solve(0)
	served := p.Objective()
	for k := range x.m.kinds {
		if column[k] < 0 {
			n = append(n, float64(x.m.kinds[k].most))
			continue
		}
		v := p.Value(column[k])
		n = append(n, v)
		cost += v * x.m.kinds[k].price
		served += v * rentWeight * x.full * x.m.kinds[k].price / max(top, math.SmallestNonzeroFloat64)
	}
	return n, cost, served >= x.full*(1-servedTolerance)
}

const (
	// reach is how far from the relaxation the numbers of machines are searched.
	reach = 2
	// mostPools is how many numbers of machines are compared at most.
	mostPools = 4096
)

// cheapest returns the numbers of machines that carry the demand at least cost, near the relaxation; all machines where
// none do.
func (x *market) cheapest() counts {
	n, _, full := x.relaxed()
	if !full {
		return x.m.all()
	}
	if whole := x.m.raised(floors(n)); whole != nil {
		for k := range n {
			n[k] = max(n[k], float64(whole[k]))
		}
	}
	for r := reach; r > 0; r-- {
		if pools := x.m.near(n, r, mostPools); pools != nil {
			for _, pool := range pools {
				if x.carries(pool) {
					return pool
				}
			}
		}
	}
	return x.descend(n)
}

// near lists the numbers of machines around fractions, the cheapest first; nil where there are more than most.
func (m *problem) near(n []float64, reach, most int) []counts {
	low, high := make(counts, len(n)), make(counts, len(n))
	total := 1
	for k := range n {
		low[k], high[k] = m.kinds[k].most, m.kinds[k].most
		if m.kinds[k].rented {
			low[k] = max(int(math.Floor(n[k]))-reach, 0)
			high[k] = min(int(math.Ceil(n[k]-servedTolerance))+reach, m.kinds[k].most)
		}
		if total *= high[k] - low[k] + 1; total > most {
			return nil
		}
	}
	return m.between(low, high)
}

// between lists all numbers of machines from low to high, the cheapest first.
func (m *problem) between(low, high counts) (out []counts) {
	now := slices.Clone(low)
	for {
		out = append(out, slices.Clone(now))
		k := 0
		for k < len(now) && now[k] == high[k] {
			now[k] = low[k]
			k++
		}
		if k == len(now) {
			break
		}
		now[k]++
	}
	slices.SortStableFunc(out, func(a, b counts) int { return cmp.Compare(m.cost(a), m.cost(b)) })
	return out
}

// descend rounds fractions up and takes machines away while the rest carries the demand, the dearest first.
func (x *market) descend(n []float64) counts {
	out := make(counts, len(n))
	order := make([]int, len(n))
	for k := range n {
		out[k], order[k] = min(int(math.Ceil(n[k]-servedTolerance)), x.m.kinds[k].most), k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(x.m.kinds[b].price, x.m.kinds[a].price) })
	for _, k := range order {
		for x.m.kinds[k].rented && out[k] > 0 {
			out[k]--
			if !x.carries(out) {
				out[k]++
				break
			}
		}
	}
	return out
}

// within takes machines away until the rest costs no more than the budget: each time those that serve least for their
// price. Then it adds what the budget still pays and serves most.
func (x *market) within(n counts, budget float64) counts {
	out := slices.Clone(n)
	change := func(by int) bool {
		best, gain := -1, math.Inf(-1)
		now := x.value(out)
		for k := range out {
			if !x.m.kinds[k].rented || x.m.kinds[k].price <= 0 || out[k]+by < 0 || out[k]+by > x.m.kinds[k].most ||
				by > 0 && x.m.cost(out)+x.m.kinds[k].price > budget {
				continue
			}
			out[k] += by
			if g := (x.value(out) - now) / x.m.kinds[k].price; g > gain && (by < 0 || g > 0) {
				best, gain = k, g
			}
			out[k] -= by
		}
		if best >= 0 {
			out[best] += by
		}
		return best >= 0
	}
	for x.m.cost(out) > budget && change(-1) {
		continue
	}
	for change(1) {
		continue
	}
	return out
}
