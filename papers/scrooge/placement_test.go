package scrooge

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// The rent of the same allocations packed in five ways: by best fit in the order in which uses come (§3.4), on as few
// machines as possible, with machines emptied, with all modules packed anew, and without some types. Each step rents no
// more than the one before.
func TestRentOfPlacements(t *testing.T) {
	var sums [4]float64
	bound, n := 0.0, 0
	for seed := range uint64(120) {
		rng := rand.New(rand.NewPCG(seed, 9))
		c := simtest.Random(rng)
		for d := range c.Spec.DeviceTypes {
			for range 40 {
				if !c.Spec.DeviceTypes[d].Part {
					c.Spec.Workers = append(c.Spec.Workers, serving.Worker{
						Name: "more", DeviceType: serving.DeviceTypeID(d),
					})
				}
			}
		}
		var rates []float64
		for range c.Spec.Apps {
			rates = append(rates, 1000*math.Pow(rng.Float64(), 2))
		}
		r := plan.Request{Spec: c.Spec, Rates: rates}
		rent := func(o Options) (*candidate, float64) {
			x := (&Planner{Profile: c.Profile, Options: o}).read(r, margin{part: 1})
			s := &candidateSearch{request: x, solved: make(map[string]*solution)}
			best, err := s.best(context.Background(), 1)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			return best, leastWholePrices(s.bound(1), x.prices)
		}
		written, _ := rent(Options{AsWritten: true})
		best, least := rent(Options{})
		if !written.fits() || !best.fits() {
			continue
		}
		few := 0.0
		x := written.request
		for d, price := range x.prices {
			var mine []piece
			for _, b := range written.packing.bins {
				if b.device == d {
					mine = append(mine, b.pieces...)
				}
			}
			few += price * float64(len(x.fewestMachines(d, mine)))
		}
		x.o.AsWritten = false
		one := *written
		one.pack()
		for k, rents := range []float64{written.cost, few, one.cost, best.cost} {
			sums[k] += rents
			if k > 0 && rents > []float64{written.cost, few, one.cost}[k-1]*(1+1e-9) {
				t.Errorf("seed %d: step %d rents more: %v, %v, %v, %v", seed, k, written.cost, few, one.cost, best.cost)
			}
		}
		bound += least
		n++
	}
	t.Logf("%d worlds, rent relative to the bound: best fit as written %.3f, fewest machines %.3f, served anew %.3f, "+
		"types left out %.3f", n, sums[0]/bound, sums[1]/bound, sums[2]/bound, sums[3]/bound)
}

// As few machines as there can be, for few pieces of random sizes, against every way to put them together.
func TestFewest(t *testing.T) {
	more := 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 4))
		x := &request{
			spec: &serving.Spec{
				DeviceTypes: []serving.DeviceType{{MemoryBytes: int64(20 * rng.IntN(2))}},
				Variants:    []serving.Variant{{}, {}},
			},
		}
		x.spec.Variants[0].MemoryBytes, x.spec.Variants[1].MemoryBytes = int64(rng.IntN(12)), int64(rng.IntN(12))
		var pieces []piece
		var first packing
		for range 1 + rng.IntN(8) {
			p := piece{
				mode: Mode{Batch: 1, Slots: 1, Latency: 1e9, Tag: rng.IntN(2)}, rate: math.Round(20*rng.Float64()) / 20,
			}
			if p.rate == 0 {
				p.rate = 0.3
			}
			pieces = append(pieces, p)
			x.bestFit(&first, p)
		}
		least := len(pieces)
		var try func(k int, bins []bin)
		try = func(k int, bins []bin) {
			if k == len(pieces) {
				least = min(least, len(bins))
			}
			if k == len(pieces) || len(bins) >= least {
				return
			}
			for n := range bins {
				if was := bins[n]; x.fits(&was, &pieces[k]) {
					x.put(&bins[n], pieces[k])
					try(k+1, bins)
					bins[n] = was
				}
			}
			next := slices.Concat(bins, []bin{x.bin(0)})
			x.put(&next[len(bins)], pieces[k])
			try(k+1, next)
		}
		try(0, nil)
		if got := x.fewestMachines(0, pieces); len(got) != least {
			t.Errorf("seed %d: %d machines, %d do", seed, len(got), least)
		}
		if len(first.bins) > least {
			more++
		}
	}
	t.Logf("best fit in the order given takes more in %d of 200", more)
}

func TestWhole(t *testing.T) {
	for _, c := range []struct {
		need float64
		want float64
	}{{7.46, 8}, {0, 0}, {0.1, 2}, {2.5, 3}, {100.5, 101}} {
		if got := leastWholePrices(c.need, []float64{2, 3}); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("prices of 2 and 3 make up %v from %v on, want %v", got, c.need, c.want)
		}
	}
	rng := rand.New(rand.NewPCG(1, 5))
	for range 200 {
		prices := []float64{1 + rng.Float64(), 1 + 2*rng.Float64(), 0.5 + rng.Float64()}
		need, least := 12*rng.Float64(), math.Inf(1)
		for a := range 30 {
			for b := range 30 {
				for c := range 30 {
					if sum := float64(a)*prices[0] + float64(b)*prices[1] + float64(c)*prices[2]; sum >= need {
						least = min(least, sum)
					}
				}
			}
		}
		if got := leastWholePrices(need, prices); math.Abs(got-least) > 1e-9 {
			t.Fatalf("%v make up %v from %v on, want %v", prices, got, need, least)
		}
	}
}

// Budgets are no shorter than what machines take. No path of them is longer than the objective, and the longest uses it
// up.
func TestStretched(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 5))
		g := pipeline{budget: time.Second, stages: make([]stage, 1+rng.IntN(6))}
		worst := make([]time.Duration, len(g.stages))
		for i := range worst {
			worst[i] = time.Duration(1 + rng.IntN(150e6))
			for to := i + 1; to < len(worst); to++ {
				if rng.IntN(2) == 0 || to == i+1 {
					g.stages[i].next = append(g.stages[i].next, to)
				}
			}
		}
		out, longest := g.proportionalBudgets(worst), time.Duration(0)
		ends := make([]time.Duration, len(out))
		for i, within := range out {
			ends[i] += within
			longest = max(longest, ends[i])
			if within < worst[i] {
				t.Errorf("seed %d: module %d gets %v and takes %v", seed, i, within, worst[i])
			}
			for _, to := range g.stages[i].next {
				ends[to] = max(ends[to], ends[i])
			}
		}
		if longest > g.budget || longest < g.budget-time.Microsecond {
			t.Errorf("seed %d: the longest path has %v of %v", seed, longest, g.budget)
		}
	}
}

// With spare capacity, batches are smaller than the cheapest ones, with as many at once, and in time earlier. Machines
// with smaller batches are used up to one half, and the rent stays the same.
func TestCalm(t *testing.T) {
	spec, p := tables34(t, 10, 10)
	x := (&Planner{Profile: p}).read(plan.Request{Spec: spec, Rates: []float64{12}}, margin{part: 1})
	s := &candidateSearch{request: x, solved: make(map[string]*solution)}
	c, err := s.best(context.Background(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for k := range c.packing.bins { // batches of one are much faster here
		for n := range c.packing.bins[k].pieces {
			q := &c.packing.bins[k].pieces[n]
			small := q.mode
			small.Batch, small.Latency = 1, small.Latency/4
			c.solutions[q.graph].modes[q.stage] = append(slices.Clone(c.solutions[q.graph].modes[q.stage]), small)
		}
	}
	rent, before := c.cost, c.budgets(0)
	slots := make(map[[2]int]int)
	worst := make(map[[2]int]time.Duration)
	for k, b := range c.packing.bins {
		for n, q := range b.pieces {
			slots[[2]int{k, n}], worst[[2]int{k, n}] = q.mode.Slots, q.mode.WorstLatency(q.rate)
		}
	}
	c.useSpareCapacity()
	smaller := 0
	for k, b := range c.packing.bins {
		for n, q := range b.pieces {
			at := [2]int{k, n}
			if q.mode.Slots != slots[at] || q.mode.WorstLatency(q.rate) > worst[at] {
				t.Errorf("%+v took %v before", q, worst[at])
			}
			if q.mode.WorstLatency(q.rate) < worst[at] {
				smaller++
			}
		}
		if smaller > 0 && b.room < 1-smallBatchLimit-roomTolerance {
			t.Errorf("machine %d is used by %v", k, 1-b.room)
		}
	}
	if smaller == 0 || c.cost != rent {
		t.Errorf("%d smaller batches, rents %v and %v before, budgets %v and %v before", smaller, c.cost, rent,
			c.budgets(0), before)
	}
}
