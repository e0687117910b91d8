package fluid

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// residency is what machines hold, while it is decided.
type residency struct {
	m         *problem
	scenarios []scenario
	sites     []site
	crowded   []bool    // by site: memory does not hold all options
	copies    []float64 // by StageID: machines that hold a usable variant of it
	small     [][]int   // by kind and StageID: the usable option that takes least memory; -1 for none
	work      *work
	value     float64    // over the scenarios, of the last evaluation
	at        []*program // by scenario: its last solution
}

// work is how much work may still be spent on programs, as program.work counts it.
type work struct {
	left float64
	ctx  context.Context // its end is the end of all work
}

// over tells whether nothing more is to be improved.
func (w *work) over() bool { return w.left <= 0 || w.ctx.Err() != nil }

// mostWork bounds the work of a request, so that a plan takes some tenths of a second and its answer does not depend on
// the machine.
const mostWork = 4e7

func (m *problem) newResidency(sites []site, w *work) *residency {
	sites = m.divided(sites)
	x := &residency{
		m: m, scenarios: m.scenarios(), sites: sites, copies: make([]float64, len(m.stages)), work: w,
		crowded: make([]bool, len(sites)), small: m.smallest(),
	}
	for i := range sites {
		x.crowded[i] = m.crowded(sites[i].kind)
		for j, holds := range sites[i].holds {
			if holds {
				x.count(i, j, sites[i].count)
			}
		}
	}
	return x
}

func (x *residency) option(i, j int) *option { return &x.m.kinds[x.sites[i].kind].options[j] }

// count adds copies of an option's stage, unless the site has another usable variant of it.
func (x *residency) count(i, j int, machines float64) {
	o := x.option(i, j)
	if o.rates == nil {
		return
	}
	for n, holds := range x.sites[i].holds {
		if y := x.option(i, n); holds && n != j && y.stage == o.stage && y.rates != nil {
			return
		}
	}
	x.copies[o.stage] += machines
}

func (x *residency) load(i, j int) {
	x.count(i, j, x.sites[i].count)
	x.sites[i].holds[j] = true
	x.sites[i].free -= x.option(i, j).need
}

func (x *residency) unload(i, j int) {
	x.sites[i].holds[j] = false
	x.sites[i].free += x.option(i, j).need
	x.count(i, j, -x.sites[i].count)
}

// allows tells whether a site may load an option that it does not hold: memory, and the most instances of the app.
func (x *residency) allows(i, j int) bool {
	s, o := &x.sites[i], x.option(i, j)
	return !s.holds[j] && o.need <= s.free && x.mayHost(i, o.stage)
}

// mayHost tells whether the app's limit of instances lets a site have one more of a stage, or it has one.
func (x *residency) mayHost(i int, s serving.StageID) bool {
	if x.m.o.Apart && x.hostsOther(i, s) && (x.copies[s] > 0 || x.anyEmpty()) {
		return false // a stage shares a machine where none is left for it alone
	}
	most := x.m.apps[x.m.stages[s].app].most
	return most == math.MaxInt || x.hosts(i, s) || x.instances(s)+x.sites[i].count <= float64(most)
}

func (x *residency) hosts(i int, s serving.StageID) bool {
	for j, holds := range x.sites[i].holds {
		if holds && x.option(i, j).stage == s {
			return true
		}
	}
	return false
}

// anyEmpty tells whether some site holds nothing.
func (x *residency) anyEmpty() bool {
	return slices.ContainsFunc(x.sites, func(s site) bool { return !slices.Contains(s.holds, true) })
}

// hostsOther tells whether a site holds a variant of another stage.
func (x *residency) hostsOther(i int, s serving.StageID) bool {
	for j, holds := range x.sites[i].holds {
		if holds && x.option(i, j).stage != s {
			return true
		}
	}
	return false
}

func (x *residency) instances(s serving.StageID) (n float64) {
	for i := range x.sites {
		if x.hosts(i, s) {
			n += x.sites[i].count
		}
	}
	return n
}

// decide fills the sites: one variant of each stage somewhere, what the scenarios want most, the least numbers of
// instances, and the rest with what memory holds.
func (x *residency) decide() {
	x.fillRoomy()
	x.cover()
	x.grow()
	for range 3 {
		if !x.exchange() {
			break
		}
	}
	for x.improve() {
		continue
	}
	x.least()
	x.fillRest()
}

// keep fills the sites beside what they hold.
func (x *residency) keep() {
	x.fillRoomy()
	x.cover()
	x.grow()
	x.least()
	x.fillRest()
}

// fillRoomy loads everything where memory holds everything, but for stages of which there may be only some instances:
// these grow where they bring most.
func (x *residency) fillRoomy() {
	for i := range x.sites {
		if x.crowded[i] {
			continue
		}
		for j := range x.sites[i].holds {
			if !x.m.capped(x.option(i, j).stage) && x.allows(i, j) {
				x.load(i, j)
			}
		}
	}
}

// uncovered is a stage that no machine serves yet, and the least memory that it takes anywhere.
type uncovered struct {
	stage serving.StageID
	need  int64
}

// coverNodes bounds the search for a packing where simple rules find none.
const coverNodes = 20_000

// cover gives each stage that none serves its smallest variant: on the emptiest machine, or else on the fullest that
// holds it, or else in any way that a search finds. Where nothing helps, stages of the lowest weight are left out.
func (x *residency) cover() {
	var list []uncovered
	for s := range x.m.stages {
		if x.copies[s] > 0 || x.m.apps[x.m.stages[s].app].closed {
			continue
		}
		need := int64(math.MaxInt64)
		for i := range x.sites {
			if j := x.smallest(i, serving.StageID(s)); j >= 0 {
				need = min(need, x.option(i, j).need)
			}
		}
		if need < math.MaxInt64 {
			list = append(list, uncovered{serving.StageID(s), need})
		}
	}
	slices.SortStableFunc(list, func(a, b uncovered) int { return cmp.Compare(b.need, a.need) })
	for len(list) > 0 {
		if x.pack(list, true) || x.pack(list, false) {
			return
		}
		if nodes := coverNodes; x.searchPacking(list, &nodes) {
			return
		}
		list = x.without(list)
	}
}

// without leaves out the app of the lowest weight, of equals the one with the lowest rate.
func (x *residency) without(list []uncovered) []uncovered {
	last := x.m.stages[list[0].stage].app
	for _, u := range list {
		a, b := &x.m.apps[x.m.stages[u.stage].app], &x.m.apps[last]
		if cmp.Or(cmp.Compare(a.weight, b.weight), cmp.Compare(a.weight*a.rate, b.weight*b.rate)) < 0 {
			last = x.m.stages[u.stage].app
		}
	}
	return slices.DeleteFunc(list, func(u uncovered) bool { return x.m.stages[u.stage].app == last })
}

// smallest returns, by kind and StageID, the usable option of a stage that takes least memory; -1 for none.
func (m *problem) smallest() [][]int {
	out := make([][]int, len(m.kinds))
	for k := range m.kinds {
		out[k] = slices.Repeat([]int{-1}, len(m.stages))
		for j := range m.kinds[k].options {
			o := &m.kinds[k].options[j]
			if at := &out[k][o.stage]; o.rates != nil && (*at < 0 || o.need < m.kinds[k].options[*at].need) {
				*at = j
			}
		}
	}
	return out
}

// smallest returns the usable option of a stage that takes least memory at a site; -1 for none.
func (x *residency) smallest(i int, s serving.StageID) int { return x.small[x.sites[i].kind][s] }

// pack covers the stages one after the other on the emptiest, or the fullest, machine. It loads nothing where it fails.
func (x *residency) pack(list []uncovered, emptiest bool) bool {
	type loaded struct{ site, option int }
	var all []loaded
	for _, u := range list {
		best, which := -1, -1
		for i := range x.sites {
			j := x.smallest(i, u.stage)
			if j < 0 || !x.allows(i, j) {
				continue
			}
			if best < 0 || x.coversBetter(i, j, best, which, emptiest) {
				best, which = i, j
			}
		}
		if best < 0 {
			for _, l := range all {
				x.unload(l.site, l.option)
			}
			return false
		}
		x.load(best, which)
		all = append(all, loaded{best, which})
	}
	return true
}

// coversBetter tells whether a stage is rather covered by an option at one site than by one at another: by the emptiest
// or the fullest machine, and where there may be few instances by the one that serves most.
func (x *residency) coversBetter(i, j, other, which int, emptiest bool) bool {
	if o := x.option(i, j); x.m.capped(o.stage) {
		if a, b := slices.Max(o.rates), slices.Max(x.option(other, which).rates); a != b {
			return a > b
		}
	}
	a, b := x.sites[i].free, x.sites[other].free
	return a != b && (a > b) == emptiest
}

// searchPacking is pack in every way, as far as nodes last.
func (x *residency) searchPacking(list []uncovered, nodes *int) bool {
	if len(list) == 0 {
		return true
	}
	for i := range x.sites {
		j := x.smallest(i, list[0].stage)
		if *nodes--; *nodes < 0 || j < 0 || !x.allows(i, j) {
			continue
		}
		x.load(i, j)
		if x.searchPacking(list[1:], nodes) {
			return true
		}
		x.unload(i, j)
	}
	return false
}

// evaluate solves the program of every scenario. It returns false when the work is used up.
func (x *residency) evaluate() bool {
	if x.at != nil && x.work.over() {
		return false
	}
	x.value = 0
	x.at = x.at[:0]
	for k := range x.scenarios {
		p := x.m.newProgram(x.sites)
		x.value += x.scenarios[k].weight * p.solve(x.scenarios[k].rates)
		x.at = append(x.at, p)
		x.work.left -= p.work()
	}
	return true
}

// gain is what loading an option brings at the prices of all scenarios.
func (x *residency) gain(i, j int) (sum float64) {
	for k := range x.at {
		sum += x.scenarios[k].weight * x.at[k].gain(i, j)
	}
	return sum * x.sites[i].count
}

// addition is an option that a site might load.
type addition struct {
	site, option int
	gain         float64
}

// negligible is the gain, relative to what everything is worth, that is not worth memory.
const negligible = 1e-7

// additions lists what might be loaded with a gain, most for its memory first.
func (x *residency) additions() (out []addition) {
	for i := range x.sites {
		for j := range x.sites[i].holds {
			if !x.allows(i, j) {
				continue
			}
			if g := x.gain(i, j); g > negligible*x.m.worth {
				out = append(out, addition{i, j, g / float64(max(x.option(i, j).need, 1))})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b addition) int { return cmp.Compare(b.gain, a.gain) })
	return out
}

// grow loads what brings most, some at a time: at most one variant at each site, and few of each stage, since the
// prices change with each.
func (x *residency) grow() {
	if !slices.Contains(x.crowded, true) && !x.m.anyCapped() {
		x.evaluate()
		return
	}
	for x.evaluate() {
		if !x.add() {
			return
		}
	}
}

// growOnce is grow with what the present prices ask for.
func (x *residency) growOnce() {
	if x.add() {
		x.evaluate()
	}
}

// add loads some of what brings most at the present prices, and tells whether there was any.
func (x *residency) add() (any bool) {
	each := max(len(x.sites)/8, 1)
	atSite, ofStage := make([]bool, len(x.sites)), make([]int, len(x.m.stages))
	for _, y := range x.additions() {
		o := x.option(y.site, y.option)
		if atSite[y.site] || ofStage[o.stage] >= each || !x.allows(y.site, y.option) {
			continue
		}
		x.load(y.site, y.option)
		atSite[y.site], any = true, true
		ofStage[o.stage]++
	}
	return any
}

// exchange unloads what no scenario uses, has the rest grow, and tells whether that has raised the value. If it has
// not, everything stays.
func (x *residency) exchange() bool {
	if !slices.Contains(x.crowded, true) || x.at == nil {
		return false
	}
	used := make([][]bool, len(x.sites))
	for i := range x.sites {
		used[i] = make([]bool, len(x.sites[i].holds))
	}
	for _, p := range x.at {
		f := p.flows()
		for i := range f.time {
			for j, t := range f.time[i] {
				used[i][j] = used[i][j] || t > leastTime
			}
		}
	}
	before, value := x.saved(), x.value
	any := false
	for i := range x.sites {
		for j, holds := range x.sites[i].holds {
			if !holds || used[i][j] || !x.crowded[i] {
				continue
			}
			if o := x.option(i, j); o.rates == nil || x.copies[o.stage] > x.sites[i].count || !x.last(i, j) {
				x.unload(i, j)
				any = true
			}
		}
	}
	if !any {
		return false
	}
	x.grow()
	if x.value > value*(1+leastRise) {
		return true
	}
	x.restore(before)
	x.evaluate()
	return false
}

const (
	// leastTime is the machines of an option below which a scenario does not use it.
	leastTime = 1e-6
	// leastRise is the relative rise of the value that is worth a further exchange.
	leastRise = 1e-5
)

// mostMoves is how many moves are evaluated for one that improves.
const mostMoves = 16

// move loads an option at a site in place of others.
type move struct {
	addition
	drop []int // options
}

// improve makes the move that looks best at the present prices of those that raise the value, and tells whether there
// is one.
func (x *residency) improve() bool {
	if !slices.Contains(x.crowded, true) || x.at == nil || x.work.over() {
		return false
	}
	before, value := x.saved(), x.value
	moves := x.moves()
	for n := range min(len(moves), mostMoves) {
		mv := &moves[n]
		for _, j := range mv.drop {
			x.unload(mv.site, j)
		}
		x.load(mv.site, mv.option)
		if !x.evaluate() {
			break
		}
		x.growOnce()
		if x.value > value*(1+leastRise) {
			return true
		}
		x.restore(before)
	}
	x.evaluate()
	return false
}

// moves lists what sites without room might load instead of what they use least, most gain first. Of sites that hold
// the same one is listed.
func (x *residency) moves() (out []move) {
	used := make([][]float64, len(x.sites))
	for i := range x.sites {
		used[i] = make([]float64, len(x.sites[i].holds))
	}
	for k, p := range x.at {
		for i, times := range p.flows().time {
			for j, t := range times {
				used[i][j] += x.scenarios[k].weight * t
			}
		}
	}
	for i := range x.sites {
		s := &x.sites[i]
		same := func(o site) bool { return o.kind == s.kind && o.count == s.count && slices.Equal(o.holds, s.holds) }
		if !x.crowded[i] || slices.ContainsFunc(x.sites[:i], same) {
			continue
		}
		for j, holds := range s.holds {
			if holds || x.allows(i, j) || !x.mayHost(i, x.option(i, j).stage) {
				continue
			}
			if g := x.gain(i, j); g > negligible*x.m.worth {
				if drop, ok := x.makeRoom(i, j, used[i]); ok {
					out = append(out, move{addition{i, j, g}, drop})
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b move) int { return cmp.Compare(b.gain, a.gain) })
	return out
}

// makeRoom chooses what a site unloads for an option: what is used least for its memory, but no stage's last variant.
func (x *residency) makeRoom(i, j int, used []float64) (drop []int, ok bool) {
	s := &x.sites[i]
	var list []int
	for n, holds := range s.holds {
		if holds {
			list = append(list, n)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int {
		return cmp.Compare(used[a]/float64(max(x.option(i, a).need, 1)), used[b]/float64(max(x.option(i, b).need, 1)))
	})
	free := s.free
	left := make(map[serving.StageID]int)
	for _, n := range list {
		if o := x.option(i, n); o.rates != nil {
			left[o.stage]++
		}
	}
	for _, n := range list {
		if free >= x.option(i, j).need {
			break
		}
		o := x.option(i, n)
		if o.rates != nil && left[o.stage] == 1 && x.copies[o.stage] <= s.count && o.stage != x.option(i, j).stage {
			continue
		}
		if o.rates != nil {
			left[o.stage]--
		}
		free += o.need
		drop = append(drop, n)
	}
	return drop, free >= x.option(i, j).need
}

// last tells whether a stage has no other usable variant at a site.
func (x *residency) last(i, j int) bool {
	s := x.option(i, j).stage
	for n, holds := range x.sites[i].holds {
		if o := x.option(i, n); holds && n != j && o.stage == s && o.rates != nil {
			return false
		}
	}
	return true
}

func (x *residency) saved() (out [][]bool) {
	for i := range x.sites {
		out = append(out, slices.Clone(x.sites[i].holds))
	}
	return out
}

func (x *residency) restore(saved [][]bool) {
	for i := range x.sites {
		for j := range x.sites[i].holds {
			switch now, was := x.sites[i].holds[j], saved[i][j]; {
			case now && !was:
				x.unload(i, j)
			case was && !now:
				x.load(i, j)
			}
		}
	}
}

// least loads stages on as many machines as their app's least number of instances asks for, as far as memory goes.
func (x *residency) least() {
	for s := range x.m.stages {
		a := &x.m.apps[x.m.stages[s].app]
		for a.least > 0 && !a.closed && x.instances(serving.StageID(s)) < float64(a.least) {
			best, which := -1, -1
			for i := range x.sites {
				j := x.smallest(i, serving.StageID(s))
				if j >= 0 && !x.hosts(i, serving.StageID(s)) && x.allows(i, j) &&
					(best < 0 || x.sites[i].free > x.sites[best].free) {
					best, which = i, j
				}
			}
			if best < 0 {
				break
			}
			x.load(best, which)
		}
	}
}

// fillRest loads what still fits: stages with the fewest copies first, of each the most accurate variant.
func (x *residency) fillRest() {
	for i := range x.sites {
		if !x.crowded[i] && !x.m.anyCapped() {
			continue
		}
		hosted := make([]bool, len(x.m.stages))
		for j, holds := range x.sites[i].holds {
			hosted[x.option(i, j).stage] = hosted[x.option(i, j).stage] || holds
		}
		for {
			best := -1
			for j := range x.sites[i].holds {
				if x.allows(i, j) && (best < 0 || x.beforeInRest(i, j, best, hosted)) {
					best = j
				}
			}
			if best < 0 {
				break
			}
			x.load(i, best)
			hosted[x.option(i, best).stage] = true
		}
	}
}

// beforeInRest orders the options that fill what is left of a site. hosted is by StageID whether the site holds
// something of it.
func (x *residency) beforeInRest(i, j, other int, hosted []bool) bool {
	a, b := x.option(i, j), x.option(i, other)
	if (a.rates != nil) != (b.rates != nil) {
		return a.rates != nil
	}
	if ha, hb := hosted[a.stage], hosted[b.stage]; ha != hb {
		return !ha
	}
	return cmp.Or(cmp.Compare(x.copies[a.stage], x.copies[b.stage]), cmp.Compare(a.loss, b.loss),
		cmp.Compare(a.need, b.need)) < 0
}
