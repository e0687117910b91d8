package scrooge

import (
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// piece is one machine's part of a module's load.
type piece struct {
	graph, stage int
	mode         Mode
	rate         float64       // items/s, above 0 and at most the mode's
	budget       time.Duration // its module's part of the objective
}

// utilization returns the part of a machine that the piece takes: input rate proportionality (§3.3).
func (p *piece) utilization() float64 { return p.rate / p.mode.Rate() }

// bin is a machine of a type that has no worker yet.
type bin struct {
	device int
	room   float64 // unused part of it, in [0, 1]
	memory int64   // unused bytes
	pieces []piece
}

// packing is the load of each machine that is rented.
type packing struct {
	bins []bin
	// bins with room; the others are full
	open []int
	used []int // machines by type
}

// roomTolerance is the part of a machine by which rounding errors may change its room.
const roomTolerance = 1e-9

// pack puts a candidate's uses on machines and computes their rent. Full uses take a machine each; partial ones share
// machines. §3.4 packs them by best fit in the order in which they come. Otherwise each type gets as few machines as
// possible, and then fewer or cheaper ones by serving some of the load in other modes within the module's budget.
func (c *candidate) pack() {
	x := c.request
	var partial []piece
	p := packing{used: make([]int, len(x.prices))}
	if c.farTooLarge() {
		return
	}
	for g, s := range c.solutions {
		for i := range s.Modules {
			for _, u := range s.Modules[i].Uses {
				one := piece{g, i, s.problem.Modules[i].Modes[u.Mode], u.Rate, s.Modules[i].Budget}
				for range u.Count {
					if one.utilization() > 1-roomTolerance {
						p.bins = append(p.bins, x.bin(one.mode.Type))
						x.put(&p.bins[len(p.bins)-1], one)
						continue
					}
					partial = append(partial, one)
				}
			}
		}
	}
	if x.o.AsWritten {
		for _, one := range partial {
			x.bestFit(&p, one)
		}
	} else {
		for d := range x.prices {
			mine := slices.DeleteFunc(slices.Clone(partial), func(p piece) bool { return p.mode.Type != d })
			p.bins = append(p.bins, x.fewestMachines(d, mine)...)
		}
	}
	c.packing = p
	c.count()
	if !x.o.AsWritten {
		c.consolidate()
		c.repack()
	}
}

// farTooLarge reports whether a candidate takes far more machines than there are. If so, it counts them without
// packing.
func (c *candidate) farTooLarge() bool {
	x := c.request
	used, all := make([]int, len(x.prices)), 0
	for _, s := range c.solutions {
		for i := range s.Modules {
			for _, u := range s.Modules[i].Uses {
				used[s.problem.Modules[i].Modes[u.Mode].Type] += u.Count
				all += u.Count
			}
		}
	}
	if all <= maxOvercommit*(len(x.spec.Workers)+maxOvercommit) {
		return false
	}
	c.packing = packing{used: used}
	c.cost = math.Inf(1)
	return true
}

// maxOvercommit is the largest ratio of machines taken to machines there are for which a packing is made.
const maxOvercommit = 4

// count sums what is rented and used, and lists the bins with room.
func (c *candidate) count() {
	p := &c.packing
	clear(p.used)
	p.open = p.open[:0]
	c.cost, c.used = 0, 0
	for k := range p.bins {
		b := &p.bins[k]
		p.used[b.device]++
		c.cost += c.request.prices[b.device]
		c.used += (1 - b.room) * c.request.prices[b.device]
		if b.room > roomTolerance {
			p.open = append(p.open, k)
		}
	}
}

// short returns, by type, how many machines more are taken than there are.
func (c *candidate) short() []int {
	out := make([]int, len(c.packing.used))
	for d, n := range c.packing.used {
		out[d] = max(0, n-len(c.request.workers[d]))
	}
	return out
}

// fits reports whether there are machines for all of it.
func (c *candidate) fits() bool {
	return !slices.ContainsFunc(c.short(), func(n int) bool { return n > 0 })
}

// bin returns an empty machine.
func (x *request) bin(device int) bin {
	b := bin{device: device, room: 1, memory: x.spec.DeviceTypes[device].MemoryBytes}
	if b.memory <= 0 {
		b.memory = unlimited
	}
	return b
}

// unlimited is the memory of a machine whose memory is not known.
const unlimited = 1 << 62

// memoryOf returns the bytes that a piece takes.
func (x *request) memoryOf(p *piece) int64 {
	return x.memory(variant(&p.mode), p.mode.Batch*p.mode.Slots)
}

// fits reports whether a bin has room for a piece.
func (x *request) fits(b *bin, p *piece) bool {
	return b.device == p.mode.Type && p.utilization() <= b.room+roomTolerance && x.memoryOf(p) <= b.memory &&
		x.meetsBudgets(b, p)
}

// meetsBudgets reports whether a bin's pieces and one more, run together, keep their budgets, extended by the part of
// the objective that is kept free. It is ours: §3.4 shares machines by their rates only, and so does a plan with all of
// the objective. It assumes the mean number of other batches beside each piece.
func (x *request) meetsBudgets(b *bin, p *piece) bool {
	if x.o.AsWritten || x.slackFactor <= 1 {
		return true
	}
	busy := p.meanBatches()
	for k := range b.pieces {
		busy += b.pieces[k].meanBatches()
	}
	for k := range b.pieces {
		if !x.inTimeBeside(&b.pieces[k], busy) {
			return false
		}
	}
	return len(b.pieces) == 0 || x.inTimeBeside(p, busy)
}

// meanBatches returns how many of its batches run on average.
func (p *piece) meanBatches() float64 { return float64(p.mode.Slots) * p.utilization() }

// inTimeBeside reports whether a piece is in time on a machine where busy batches run on average, its own included.
func (x *request) inTimeBeside(p *piece, busy float64) bool {
	m := p.mode
	others := int(math.Ceil(busy - p.meanBatches() - negligibleBatches))
	if others <= 0 {
		return true
	}
	took := x.believed.Latency(variant(&m), serving.DeviceTypeID(m.Type), m.Batch, m.Slots+others)
	return m.WorstLatency(p.rate)+max(0, took-m.Latency) <= time.Duration(float64(p.budget)*x.slackFactor)
}

// negligibleBatches is the mean number of other batches that is ignored.
const negligibleBatches = 0.1

func (x *request) put(b *bin, p piece) {
	b.room = max(b.room-p.utilization(), 0)
	b.memory -= x.memoryOf(&p)
	b.pieces = append(b.pieces, p)
}

// bestFit puts a piece where it leaves least room, on a new machine if it fits nowhere else (§3.4).
func (x *request) bestFit(p *packing, one piece) {
	best := -1
	for k := range p.bins {
		if b := &p.bins[k]; x.fits(b, &one) && (best < 0 || b.room < p.bins[best].room) {
			best = k
		}
	}
	if best < 0 {
		best = len(p.bins)
		p.bins = append(p.bins, x.bin(one.mode.Type))
	}
	x.put(&p.bins[best], one)
}
