package partition

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// machines divides each machine type among the cells by their load. Every cell gets a machine.
func (f *Fleet) machines(out, before []Cell, load []float64) {
	for at := range out {
		out[at].Most = map[string]int32{}
	}
	types := slices.Sorted(maps.Keys(f.Most))
	for _, t := range types {
		most := f.Most[t]
		if most <= 0 {
			continue
		}
		shares := keptOr(out, before, load, t, most)
		for at, n := range shares {
			if n > 0 {
				out[at].Most[t] = n
			}
		}
	}
	for at := range out {
		if len(out[at].Most) == 0 {
			give(out, at, types)
		}
	}
}

// keptOr returns the parts of a machine type that cells have, where these still add up and are near enough to what they
// should be, and the exact ones otherwise.
func keptOr(out, before []Cell, load []float64, t string, most int32) []int32 {
	want := apportion(load, most)
	if len(before) != len(out) {
		return want
	}
	have := make([]int32, len(out))
	var sum int32
	for at := range out {
		have[at] = before[at].Most[t]
		sum += have[at]
	}
	if sum != most {
		return want
	}
	for at := range out {
		off := math.Abs(float64(have[at] - want[at]))
		if off > 1 && off > drift*float64(want[at]) || have[at] == 0 && want[at] > 0 && most >= int32(len(out)) {
			return want
		}
	}
	return have
}

// apportion divides n by weights: whole parts first, then one more each for the largest rests. Where there are enough,
// nobody goes without.
func apportion(weights []float64, n int32) []int32 {
	out := make([]int32, len(weights))
	left := n
	if n >= int32(len(weights)) {
		for at := range out {
			out[at] = 1
		}
		left -= int32(len(weights))
	}
	total := sum(weights)
	order := make([]int, len(weights))
	rest := make([]float64, len(weights))
	given := int32(0)
	for at, w := range weights {
		order[at] = at
		exact := float64(left) / float64(len(weights))
		if total > 0 {
			exact = float64(left) * w / total
		}
		whole := int32(math.Floor(exact))
		out[at] += whole
		given += whole
		rest[at] = exact - float64(whole)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(rest[b], rest[a]), cmp.Compare(weights[b], weights[a]))
	})
	for i := 0; given < left; i++ {
		out[order[i%len(order)]]++
		given++
	}
	return out
}

// give gives a cell without machines one of the cell that has most.
func give(out []Cell, at int, types []string) {
	from, which, best := -1, "", 1
	for other := range out {
		total := 0
		for _, n := range out[other].Most {
			total += int(n)
		}
		if total <= best {
			continue
		}
		for _, t := range types {
			if out[other].Most[t] > 0 {
				from, which, best = other, t, total
			}
		}
	}
	if from < 0 {
		return // there are as many machines as cells, and all have one
	}
	out[at].Most[which]++
	if out[from].Most[which]--; out[from].Most[which] == 0 {
		delete(out[from].Most, which)
	}
}

// budget divides the budget by load, in prices of a machine, so that as many can be had as one cell could have for all
// of it. Each cell can pay for one; it reports whether the budget suffices for that.
func (f *Fleet) budget(out, before []Cell, load []float64) bool {
	if f.Budget <= 0 {
		return true
	}
	least := f.least(out)
	unit := slices.Max(least)
	n := min(math.Floor(f.Budget/unit+1e-9), mostUnits)
	enough := n >= float64(len(out)) // or unit is 0
	want, rest, most := make([]float64, len(out)), f.Budget, 0
	if enough && unit > 0 {
		for at, k := range apportion(load, int32(n)) {
			want[at] = unit * float64(k)
			rest -= want[at]
			if load[at] > load[most] {
				most = at
			}
		}
		want[most] += rest
	} else {
		total := sum(load)
		for at, w := range load {
			want[at] = f.Budget * w / total
		}
	}
	if f.keepsBudget(before, least, want, unit) {
		for at := range out {
			out[at].Budget = before[at].Budget
		}
		return enough
	}
	for at := range out {
		out[at].Budget = want[at]
	}
	return enough
}

// mostUnits is of how many machines a budget is counted.
const mostUnits = 1 << 20

// keepsBudget reports whether the parts of the budget that cells have are near enough to what they should be, and buy
// as many machines.
func (f *Fleet) keepsBudget(before []Cell, least, want []float64, unit float64) bool {
	if len(before) != len(want) {
		return false
	}
	had, lost := 0.0, 0.0
	for at := range want {
		b := before[at].Budget
		if b < least[at] || math.Abs(b-want[at]) > max(unit, drift*want[at])*(1+1e-9) {
			return false
		}
		had += b
		if unit > 0 {
			lost += math.Mod(b+1e-9, unit)
		}
	}
	return math.Abs(had-f.Budget) < 1e-6*f.Budget && (unit == 0 || lost < unit)
}

func sum(list []float64) (s float64) {
	for _, x := range list {
		s += x
	}
	return s
}

// least is the price of the cheapest machine that each cell may have.
func (f *Fleet) least(out []Cell) []float64 {
	least := make([]float64, len(out))
	for at := range out {
		least[at] = math.Inf(1)
		for t := range out[at].Most {
			least[at] = min(least[at], number(f.Prices[t]))
		}
		least[at] = number(least[at])
	}
	return least
}
