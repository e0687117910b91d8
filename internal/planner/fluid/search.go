package fluid

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// search looks for the best plan of a problem.
type search struct {
	m    *problem
	ctx  context.Context
	try  plan.Try // nil for none
	left int      // trials
	now  *running
	// failed are the rented machines that did not serve in time with all variants when they were tried.
	failed []counts
	// unkept is by how much the machines miss targets that serve in time and miss them least (targets.go).
	unkept []float64
	work   work
	best   *candidate
	// tried are the candidates that were simulated.
	tried *[]*candidate
}

// candidate is a plan with what is expected of it.
type candidate struct {
	m     *problem // with the options that sites name
	plan  *plan.Plan
	sites []site
	value float64 // over the scenarios, less what loads cost
	lost  float64 // part of the machines' time until the horizon that its loads take
	full  bool    // the program serves the present demand
	keeps bool    // nothing that runs is unloaded
	what  string  // in words
	tried *plan.Tried
}

// horizon is for how long a plan is expected to be in force: loads have to pay within it.
const horizon = 30 * time.Second

func (m *problem) newSearch(ctx context.Context, p *Planner) *search {
	s := &search{
		m: m, ctx: ctx, try: p.Try, left: p.Options.Trials, now: m.running(), work: work{mostWork, ctx},
		tried: new([]*candidate),
	}
	if s.left == 0 {
		s.left = DefaultTrials
	}
	return s
}

// ended tells whether the time for planning is over.
func (s *search) ended() bool { return s.ctx.Err() != nil }

// run finds the best candidate.
func (s *search) run() error {
	if s.m.rents() {
		return s.rent()
	}
	n := s.m.all()
	list := s.residencies(n)
	s.best = list[0]
	s.best.plan.Choice = "it serves most by the program, less what its loads take"
	stays := s.m.r.Snapshot != nil && s.best.plan.Loads == 0
	if stays {
		s.best.plan.Choice = "nothing is better than what runs"
		if !s.m.anyCrowded(n) {
			return nil // a trial would take time from what is served, and decide nothing
		}
	}
	if err := s.attempt(s.best); err != nil || s.best.tried == nil {
		return err
	}
	if stays && s.best.tried.Violation <= s.m.allowed() {
		return nil
	}
	for _, c := range s.others(n) {
		if err := s.attempt(c); err != nil {
			return err
		}
		if c.tried == nil || c.strands(s.best) {
			continue
		}
		enough := enoughGain
		if s.best.keeps {
			enough = enoughChange
		}
		if s.gain(c) > s.gain(s.best)+enough {
			s.best = c
			s.best.plan.Choice = "a trial finds that it serves more, as accurately, than what is best by the program"
		}
	}
	return s.orKeep(list)
}

// others lists further candidates to try where memory does not hold everything: machines that are filled evenly and,
// where the best by the program is late, machines that are filled for the present demand alone.
func (s *search) others(n counts) (out []*candidate) {
	if !s.m.anyCrowded(n) {
		return nil
	}
	if len(s.m.stages) <= mostForeseen {
		out = append(out, s.filled(n, s.m.scenarios(), "filled evenly", (*residency).spread))
	}
	if !s.m.o.Certain && s.best.tried.Violation > s.m.allowed() {
		out = append(out, s.filled(n, []scenario{{s.m.demand(), presentWeight}}, "filled for the present demand alone",
			(*residency).decide))
	}
	return out
}

// orKeep has what runs stay unless a trial finds that the best candidate brings clearly more, its loads counted.
func (s *search) orKeep(list []*candidate) error {
	at := slices.IndexFunc(list, func(c *candidate) bool { return c.keeps })
	if at < 0 || list[at] == s.best {
		return nil
	}
	kept := list[at]
	if err := s.attempt(kept); err != nil || kept.tried == nil {
		return err
	}
	if s.gain(s.best) <= s.gain(kept)+enoughChange {
		s.best = kept
		s.best.plan.Choice = "what runs stays: a trial finds nothing that serves clearly more"
	}
	return nil
}

// enoughGain is by how much a candidate has to be better by its trial than the best by the program, and enoughChange
// than what runs: in parts of what serving everything is worth.
const enoughGain, enoughChange = 0.001, 0.005

// gain is what a candidate brings by its trial: what serving is worth, and accuracy, less what it is short of targets,
// and what is lost while it loads.
func (s *search) gain(c *candidate) float64 {
	late, below, all := 0.0, 0.0, 0.0
	short := s.m.short(c)
	for a := range s.m.apps {
		x := &s.m.apps[a]
		if !x.closed && a < len(c.tried.Late) {
			w := x.weight * x.rate
			late, below, all = late+w*c.tried.Late[a], below+w*short[a], all+w
		}
	}
	all = max(all, math.SmallestNonzeroFloat64)
	return (served*(1-late/all) + c.tried.Utility - missed*below/all) / (served + 1) * (1 - c.lost)
}

// filled returns a candidate of machines that are filled in some way for some demands, whatever they hold now.
func (s *search) filled(n counts, demands []scenario, what string, fill func(*residency)) *candidate {
	x := s.m.newResidency(s.m.fresh(n), &s.work)
	x.scenarios = demands
	fill(x)
	s.m.assign(x.sites, s.m.chosen(n, s.now), s.now)
	return s.candidate(x, what)
}

// strands tells whether a candidate has no machine for a stage that another one has some for. What is called rarely
// hardly counts in a trial.
func (c *candidate) strands(other *candidate) bool {
	has := make(map[serving.StageID]bool)
	for i := range c.plan.Instances {
		has[c.plan.Instances[i].Stage] = true
	}
	return slices.ContainsFunc(other.plan.Instances, func(i plan.Instance) bool { return !has[i.Stage] })
}

// sameViolation is the difference of two shares of late queries that does not count.
const sameViolation = 0.002

// residencies returns candidates for given machines, the best by the program first: what the machines hold as it is,
// with what else they have room for, and filled afresh.
func (s *search) residencies(n counts) (out []*candidate) {
	used := s.m.chosen(n, s.now)
	if len(s.now.held) > 0 {
		if sites := s.m.kept(used, s.now); sites != nil && !s.m.beyondMost(sites) {
			x := s.m.newResidency(sites, &s.work)
			x.keep()
			out = append(out, s.candidate(x, whatRuns))
			out[0].keeps = true
			if x := s.m.newResidency(copied(x.sites), &s.work); slices.Contains(x.crowded, true) {
				x.decide()
				out = append(out, s.candidate(x, "what runs, changed"))
			}
		}
	}
	if len(out) == 0 || s.m.anyCrowded(n) {
		out = append(out, s.filled(n, s.m.scenarios(), "filled afresh", (*residency).decide))
	}
	slices.SortStableFunc(out, func(a, b *candidate) int {
		switch {
		case a.value > b.value+negligibleRise:
			return -1
		case a.value < b.value-negligibleRise:
			return 1
		}
		return 0
	})
	return out
}

// negligibleRise is the rise of the value for which nothing is loaded.
const negligibleRise = 1e-4

func copied(sites []site) []site {
	out := slices.Clone(sites)
	for i := range out {
		out[i].holds = slices.Clone(out[i].holds)
	}
	return out
}

func (m *problem) anyCrowded(n counts) bool {
	for k := range n {
		if n[k] > 0 && m.crowded(k) {
			return true
		}
	}
	return false
}

// whatRuns names the candidate that unloads nothing.
const whatRuns = "what runs"

// candidate makes a candidate of a residency.
func (s *search) candidate(x *residency, what string) *candidate {
	x.evaluate()
	machines := 0.0
	for i := range x.sites {
		machines += x.sites[i].count
	}
	_, seconds := s.m.loads(x.sites, s.now)
	c := &candidate{m: s.m, what: what, sites: x.sites, lost: min(seconds/(max(machines, 1)*horizon.Seconds()), 1)}
	c.value = x.value * (1 - c.lost)
	c.plan = s.m.plan(x.sites, s.now)
	c.full = true
	for a, shed := range c.plan.Shed {
		c.full = c.full && (shed == 0 || !s.m.servedAnywhere(a))
	}
	return c
}

const (
	// unforeseen is the time of loads from which the demand may grow beyond its forecast before machines can follow.
	// spare is the multiple of the demand that rented machines then have to serve in a trial.
	unforeseen = 3 * time.Second
	spare      = 1.1
)

// longestLoad is the longest load of a variant that any machine may hold.
func (m *problem) longestLoad() (most time.Duration) {
	for k := range m.kinds {
		for j := range m.kinds[k].options {
			most = max(most, m.kinds[k].options[j].load)
		}
	}
	return most
}

// attempt simulates a candidate, if trials are left, and has its plan forecast what came out.
func (s *search) attempt(c *candidate) error {
	if s.try == nil || s.left <= 0 || c.tried != nil || s.ended() {
		return nil
	}
	s.left--
	asked := s.m.servableRequest()
	if s.m.rents() && s.m.longestLoad() > unforeseen {
		for a := range asked.Rates {
			asked.Rates[a] *= spare
		}
	}
	t, err := s.try(s.ctx, &asked, c.plan)
	if s.ended() {
		return nil // what was found until now is the answer
	}
	if err != nil {
		return err
	}
	c.tried = &t
	*s.tried = append(*s.tried, c)
	if t.Queries > 0 {
		f := &c.plan.Forecast
		f.Violation, f.Accuracy, f.Deviation, f.Queries = t.Violation, t.Accuracy, t.Deviation, t.Queries
		f.Late, f.Accurate = t.Late, t.Accurate
		s.m.withLost(f)
	}
	if s.m.rents() && !c.full && t.Violation <= s.m.allowed() {
		c.full = true // more than the program thinks possible
		c.plan.Shed, c.plan.Shortage = nil, nil
		for a := range c.plan.Capacity {
			c.plan.Capacity[a] = max(c.plan.Capacity[a], c.plan.Demand[a])
		}
	}
	return nil
}

// record has the chosen plan say what was tried, and what second answers bring.
func (s *search) record() {
	s.best.plan.Forecast.Second = s.best.m.secondBring(s.best.sites)
	for _, c := range *s.tried {
		if c.tried.Queries == 0 {
			continue
		}
		machines := make([]int, len(s.m.spec.DeviceTypes))
		for i := range c.sites {
			machines[s.m.kinds[c.sites[i].kind].device] += len(c.sites[i].workers)
		}
		s.best.plan.Trials = append(s.best.plan.Trials, plan.Trial{
			Candidate: c.what, Machines: machines, CostPerHour: c.plan.Forecast.CostPerHour, Loads: c.plan.Loads,
			Sheds: !c.full, Adopted: c == s.best, Violation: c.tried.Violation, Deviation: c.tried.Deviation,
			Accuracy: c.tried.Accuracy, Utility: c.tried.Utility,
		})
	}
}

// headrooms are the multiples of the demand for which machines are rented, in the order in which they are tried. The
// program divides the objective of a graph over its stages, and rules need not: less than it asks for may do.
var headrooms = []float64{0.6, 0.7, 0.8, 0.9, 1, 1.08, 1.16, 1.3, 1.45, 1.6, 1.8, 2, 2.4, 3, 4, 5.5, 7.5, 10, 14, 20,
	30, 50}

// untriedHeadroom is the multiple where nothing can be simulated.
const untriedHeadroom = 1.3

// rent chooses machines and what they hold: of the pools that carry multiples of the demand, the cheapest one that
// serves in time when it is tried.
func (s *search) rent() error {
	if s.try == nil || s.left <= 0 {
		s.rentUntried()
		s.best.plan.Choice = "these are the cheapest machines for the demand and some head-room"
		return nil
	}
	pools := s.pools()
	made := make([]*candidate, len(pools))
	at := func(i int) (*candidate, error) {
		if made[i] == nil {
			var err error
			if made[i], err = s.pool(pools[i]); err != nil {
				return nil, err
			}
		}
		return made[i], nil
	}
	low, high, c, err := s.halve(len(pools), at)
	if err == nil && !s.ended() && c.tried != nil && c.tried.Violation <= s.m.allowed() && !s.keepsTargets(c) {
		// Not even the largest machines keep the targets: the first that come as near.
		s.unkept = s.m.short(c)
		low, high, c, err = s.halve(len(pools), at)
	}
	if err != nil {
		return err
	}
	if s.ended() {
		s.rentInTime()
		return nil
	}
	s.best = c
	if !s.serves(c) {
		s.fallBack(made)
		return nil
	}
	if low > 0 {
		if err := s.refine(made[low-1], pools[low-1], pools[high]); err != nil {
			return err
		}
	}
	err = s.descend()
	s.best.plan.Choice = fmt.Sprintf("it is the cheapest of those tried that serve in time, with at most %.2g %% late",
		100*s.m.allowed())
	return err
}

// halve finds the first of n pools that serves, and its candidate: the pools get larger. It lies from low to high where
// trials end before. There is no candidate once the time is over.
func (s *search) halve(n int, at func(int) (*candidate, error)) (low, high int, c *candidate, err error) {
	high = n - 1
	for low < high && s.left > 1 && !s.ended() {
		middle := (low + high) / 2
		if c, err = at(middle); err != nil {
			return low, high, nil, err
		}
		if s.serves(c) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	if s.ended() {
		return low, high, nil, nil
	}
	c, err = at(high)
	return low, high, c, err
}

// descend gives machines of the best pool back, one after the other and the dearest first, as long as trials are left
// and what remains serves in time. Pools that carry multiples of a demand have some of every kind to spare.
func (s *search) descend() error {
	order := make([]int, len(s.m.kinds))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.m.kinds[b].price, s.m.kinds[a].price) })
	for _, k := range order {
		for s.m.kinds[k].rented && s.left > 0 && s.best.tried != nil {
			n := s.m.used(s.best.sites)
			if n[k]--; n[k] < 0 || s.failedWith(n) || s.m.raised(n) != nil {
				break
			}
			c, err := s.pool(n)
			if err != nil {
				return err
			}
			if !s.serves(c) {
				break
			}
			s.best = c
		}
	}
	return nil
}

// used counts the machines of sites.
func (m *problem) used(sites []site) counts {
	n := make(counts, len(m.kinds))
	for i := range sites {
		n[sites[i].kind] += len(sites[i].workers)
	}
	return n
}

// failedWith reports whether a pool was tried before, and did not serve in time.
func (s *search) failedWith(n counts) bool {
	return slices.ContainsFunc(s.failed, func(o counts) bool { return slices.Equal(o, n) })
}

// pool tries rented machines: with all that they hold or, where that does not serve in time, with the variants only
// that take least time.
func (s *search) pool(n counts) (*candidate, error) {
	c := s.residencies(n)[0]
	if err := s.attempt(c); err != nil || s.serves(c) || c.tried == nil {
		return c, err
	}
	s.failed = append(s.failed, slices.Clone(n))
	few := *s
	if few.m = s.m.lean(n); few.m.held() == s.m.held() {
		return c, nil
	}
	few.now = few.m.running()
	d := few.residencies(n)[0]
	d.what += ", with fast variants only"
	err := few.attempt(d)
	s.left, s.work = few.left, few.work
	if d.tried != nil && d.full && s.serves(d) {
		return d, err
	}
	return c, err
}

// pools lists the pools for the head-rooms, the cheapest first.
func (s *search) pools() (out []counts) {
	for _, h := range headrooms {
		x := s.m.carried(h)
		n := x.cheapest()
		if b := s.m.o.Budget; b > 0 && s.m.cost(n) > b {
			n = x.within(n, b)
		}
		if !slices.ContainsFunc(out, func(o counts) bool { return slices.Equal(o, n) }) {
			out = append(out, n)
		}
	}
	return out
}

// rentInTime chooses machines when the context has ended: the cheapest that have served in time until then, or else as
// if nothing could be simulated.
func (s *search) rentInTime() {
	for _, c := range *s.tried {
		if s.serves(c) && (s.best == nil || c.plan.Forecast.CostPerHour < s.best.plan.Forecast.CostPerHour) {
			s.best = c
		}
	}
	if s.best == nil {
		s.rentUntried()
	}
	s.best.plan.Choice = "the time for planning was over: it is the best found until then"
}

// rentUntried rents for the usual head-room where nothing can be simulated; for less, or more, where the budget does
// not pay for that, or memory does not hold what is to be served.
func (s *search) rentUntried() {
	usual := slices.Index(headrooms, untriedHeadroom)
	for k := range headrooms {
		if k <= usual {
			k = usual - k
		}
		x := s.m.carried(headrooms[k])
		n := x.cheapest()
		if s.m.cost(n) > s.m.limited()+centTolerance {
			if k > usual {
				break
			}
			n = x.within(n, s.m.o.Budget)
		}
		if c := s.residencies(n)[0]; s.best == nil || c.full || c.value > s.best.value {
			s.best = c
		}
		if s.best.full {
			return
		}
	}
}

// serves tells whether a candidate serves everything in time and as accurately as targets ask for, as far as that is
// known: by its trial where there is one.
func (s *search) serves(c *candidate) bool {
	if !c.full {
		return false
	}
	return c.tried == nil || c.tried.Violation <= s.m.allowed() && s.keepsTargets(c)
}

// allowedPart is the part of the violations that objectives allow of which a trial may have as many: trials know the
// arrivals that come no better than by chance.
const allowedPart = 0.6

// allowed is the share of late queries with which a trial serves in time: by the strictest objective.
func (m *problem) allowed() float64 {
	percentile := 0.0
	for a := range m.apps {
		if !m.apps[a].closed {
			percentile = max(percentile, m.spec.Apps[a].SLO.Percentile)
		}
	}
	return max(allowedPart*(1-percentile/100), 1e-3)
}

// refine looks for a cheaper pool than the best one that costs more than one that does not serve in time.
func (s *search) refine(failed *candidate, from, to counts) error {
	if failed == nil {
		return nil
	}
	low, high := make(counts, len(from)), make(counts, len(from))
	total := 1
	for k := range from {
		low[k], high[k] = from[k], from[k]
		if s.m.kinds[k].rented {
			low[k] = max(min(from[k], to[k])-1, 0)
			high[k] = min(max(from[k], to[k])+1, s.m.kinds[k].most)
		}
		if total *= high[k] - low[k] + 1; total > mostPools {
			return nil
		}
	}
	market := s.m.carried(headrooms[0])
	var list []counts
	for _, n := range s.m.between(low, high) {
		if c := s.m.cost(n); c > s.m.cost(from)+1e-9 && c < s.m.cost(to)-1e-9 && market.carries(n) {
			list = append(list, n)
		}
	}
	for first, last := 0, len(list); first < last && s.left > 0 && !s.ended(); {
		middle := (first + last) / 2
		c, err := s.pool(list[middle])
		if err != nil {
			return err
		}
		if s.serves(c) && c.tried != nil {
			s.best, last = c, middle
		} else {
			first = middle + 1
		}
	}
	return nil
}

// fallBack takes, where nothing serves in time, what serves most in time of what was tried; of about equals the
// cheapest.
func (s *search) fallBack(made []*candidate) {
	if s.best.tried == nil {
		return
	}
	least := math.Inf(1)
	for _, c := range made {
		if c != nil && c.tried != nil {
			least = min(least, c.tried.Violation)
		}
	}
	for _, c := range made {
		if c != nil && c.tried != nil && c.tried.Violation <= least+sameViolation {
			s.best = c
			break
		}
	}
	s.best.plan.Choice = "nothing serves in time: it is the cheapest of those tried that serve most"
}
