package profile

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Learner is a Profile that learns from the batches that end.
type Learner interface {
	Profile
	// Observe takes note that a batch of items of v on d, one of concurrency at once, ended well after took.
	Observe(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int, took time.Duration)
	// Grow takes up what a spec that has grown adds. measured is what learning begins with for it; nil for nothing.
	Grow(spec *serving.Spec, measured Profile)
	// Epoch moves when what is believed has changed so much that plans made before may be bad ones.
	Epoch() uint64
	// Frozen returns what is known now, for planners: Unknown where the answer would be a guess. It does not change any
	// more.
	Frozen() Profile
	// Known tells whether the answers for v on d rest on more than a guess.
	Known(v serving.VariantID, d serving.DeviceTypeID) bool
}

const (
	minObservations   = 5     // observations after which a size, or a variant on a device type, speaks for itself
	ringSize          = 15    // observations of a size that are remembered
	maxAnchors        = 32    // sizes that a line is drawn through, at most
	concurrencyLevels = 8     // of concurrency that are told apart; more count as so many
	recentRatios      = 16    // observations that tell a machine which has changed
	changedMajority   = 13    // how many of them must be off, all to one side
	minLogRatio       = 0.095 // how far, as a logarithm: a tenth
	// mostUsual bounds what an observation adds to the usual deviation, so that an accident does not make a change look
	// usual.
	maxDeviation  = 0.5
	deviationSpan = 64                   // observations over which it is smoothed
	replanFactor  = 1.1                  // a change of belief by more than this factor is worth a plan
	minSizeRatio  = 1.25                 // ratio of two sizes whose difference says something of the cost of an item
	maxFitGap     = 64                   // observations between two makings of a table, at most
	unseenLatency = time.Microsecond     // of what nothing is known about
	maxBelieved   = float64(Unknown / 2) // that is believed of anything that was observed
)

// Learned is a Profile that begins with little and ends as a table: a line through the sizes seen (latency is close to
// linear in the items, Kairos §5.1), on which every size that was seen often enough answers with the median of its last
// observations. A prior, where there is one, takes the place of the line, scaled to what is seen.
//
// What is not known is believed to be fast: a router that compares then tries it, and after a handful of batches it is
// known. Unknown would keep everybody away for ever. For the same reason a line is drawn no further beyond the largest
// size seen than that is from the smallest, as a ratio, but to twice the largest in any case.
//
// Latency never falls with items. When most of the last observations are off to one side, the machine has changed, and
// sizes that were not seen since move with those that were.
type Learned struct {
	beliefs
	spec    *serving.Spec
	learned []learned // by variant*devices + device type
	epoch   uint64

	// Room to work in.
	points  []anchor
	slopes  []float64
	scratch []float64
	sizes   []size
	blocks  []size
}

// size is what is believed of a class of sizes that speaks for itself.
type size struct {
	class        int
	rank         int // among all sizes seen
	took, weight float64
}

// beliefs is what a Learned answers with.
type beliefs struct {
	prior   Profile // nil for none
	devices int
	cells   []believed
}

// believed is what is believed of a variant on a device type.
type believed struct {
	maxItems int // items of a batch, at most
	// tables are by concurrency-1, then by class of size: the table of that concurrency, or the nearest there is; nil
	// before the first is known.
	tables [concurrencyLevels][]time.Duration
}

// learned is what was observed of a variant on a device type.
type learned struct {
	levels [concurrencyLevels]*observed // by concurrency-1; nil before the first observation
}

type observed struct {
	rings     []*ring // by class of size; nil before the first observation
	seen      uint64
	nextFit   uint64          // at which observation the table is made again
	table     []time.Duration // nil while not enough was seen
	published []time.Duration // the table when the epoch last moved because of it
	// Of the last observations of sizes that are known: how far they were from what was believed.
	logs         [recentRatios]float64 // of the ratio
	above, below uint16                // one bit for each, the newest lowest
	deviation    float64               // size of the logarithms, in the mean of many
}

// NewLearned returns a profile for spec that has observed nothing. prior is what is believed before; nil for nothing.
func NewLearned(spec *serving.Spec, prior Profile) *Learned {
	n := len(spec.Variants) * len(spec.DeviceTypes)
	l := &Learned{
		spec: spec, learned: make([]learned, n), beliefs: beliefs{
			prior: prior, devices: len(spec.DeviceTypes), cells: make([]believed, n),
		},
	}
	for at := range l.cells {
		l.cells[at].maxItems = spec.Variants[at/l.devices].MaxBatch
	}
	l.points, l.scratch = make([]anchor, 0, maxAnchors), make([]float64, 0, maxAnchors)
	l.slopes = make([]float64, 0, maxAnchors*(maxAnchors-1)/2)
	return l
}

// Grow implements Learner. What was observed stays; Frozen profiles are not touched.
func (l *Learned) Grow(spec *serving.Spec, measured Profile) {
	l.spec, l.prior = spec, measured
	for at := len(l.cells); at < len(spec.Variants)*l.devices; at++ {
		l.cells = append(l.cells, believed{maxItems: spec.Variants[at/l.devices].MaxBatch})
		l.learned = append(l.learned, learned{})
	}
}

// Latency implements Profile. Items beyond the variant's MaxBatch are Unknown.
func (b *beliefs) Latency(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration {
	c := &b.cells[int(v)*b.devices+int(d)]
	if items < 1 || items > c.maxItems {
		return Unknown
	}
	if t := c.tables[min(max(concurrency, 1), concurrencyLevels)-1]; t != nil {
		return t[classOf(items)]
	}
	return b.guess(v, d, items, concurrency)
}

// guess answers for what was not seen often enough: the prior, or half of the least that is believed of other device
// types, so that comparing leads to trying.
func (b *beliefs) guess(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration {
	if l := b.priorLatency(v, d, items, concurrency); l != Unknown {
		return l
	}
	least := Unknown
	for o := range b.devices {
		if t := b.cells[int(v)*b.devices+o].tables[min(max(concurrency, 1), concurrencyLevels)-1]; t != nil {
			least = min(least, t[classOf(items)])
		} else {
			least = min(least, b.priorLatency(v, serving.DeviceTypeID(o), items, concurrency))
		}
	}
	if least == Unknown {
		return unseenLatency
	}
	return max(least/2, unseenLatency)
}

// before is what the prior says.
func (b *beliefs) priorLatency(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration {
	if b.prior == nil {
		return Unknown
	}
	return b.prior.Latency(v, d, items, concurrency)
}

// Load implements Profile: what the prior says, else 0.
func (b *beliefs) Load(v serving.VariantID, d serving.DeviceTypeID) time.Duration {
	if b.prior == nil {
		return 0
	}
	return b.prior.Load(v, d)
}

// Known implements Learner.
func (b *beliefs) Known(v serving.VariantID, d serving.DeviceTypeID) bool {
	return b.cells[int(v)*b.devices+int(d)].tables[0] != nil || b.priorLatency(v, d, 1, 1) != Unknown
}

// Epoch implements Learner.
func (l *Learned) Epoch() uint64 { return l.epoch }

// Frozen implements Learner.
func (l *Learned) Frozen() Profile {
	out := beliefs{prior: l.prior, devices: l.devices, cells: slices.Clone(l.cells)}
	for at := range out.cells {
		for k := range out.cells[at].tables {
			if t := &out.cells[at].tables[k]; k > 0 && *t != nil && &(*t)[0] == &l.cells[at].tables[k-1][0] {
				*t = out.cells[at].tables[k-1]
			} else {
				*t = slices.Clone(*t)
			}
		}
	}
	return &frozen{out}
}

// frozen is beliefs of one moment, less the guesses: whoever plans must not count on a guess, and may want to find out.
type frozen struct{ beliefs }

// Latency implements Profile.
func (f *frozen) Latency(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration {
	if !f.Known(v, d) {
		return Unknown
	}
	return f.beliefs.Latency(v, d, items, concurrency)
}

// Observe implements Learner. It allocates when a size is seen for the first time, and then no more.
func (l *Learned) Observe(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int, took time.Duration) {
	at := int(v)*l.devices + int(d)
	c := &l.cells[at]
	if took <= 0 || items < 1 || items > c.maxItems || concurrency < 1 {
		return
	}
	level := min(concurrency, concurrencyLevels)
	o := l.learned[at].levels[level-1]
	if o == nil {
		o = &observed{rings: make([]*ring, classOf(c.maxItems)+1)}
		l.learned[at].levels[level-1] = o
	}
	k := classOf(items)
	if o.rings[k] == nil {
		o.rings[k] = &ring{}
	}
	o.seen++
	by := 1.0
	if o.table != nil && o.rings[k].n >= minObservations {
		by = o.noteRatio(float64(took) / float64(o.table[k]))
	}
	o.rings[k].add(min(float64(took), maxBelieved))
	if by != 1 {
		o.rescale(by)
	} else if o.seen < max(o.nextFit, minObservations) {
		return
	}
	// More observations change less, and a larger table is more work to make.
	o.nextFit = o.seen + max(1, min(o.seen/8, uint64(len(o.rings)/2), maxFitGap))
	first := o.table == nil
	if first {
		o.table, o.published = make([]time.Duration, len(o.rings)), make([]time.Duration, len(o.rings))
	}
	l.makeTable(o, v, d, level)
	if first {
		l.learned[at].linkLevels(c)
	}
	if first || differ(o.table, o.published) {
		copy(o.published, o.table)
		l.epoch++
	}
}

// answer lets every concurrency answer with its table, or with that of the next lower, or else higher, that has one.
func (x *learned) linkLevels(c *believed) {
	for k := range c.tables {
		c.tables[k] = nil
		for from := k; from >= 0 && c.tables[k] == nil; from-- {
			if x.levels[from] != nil {
				c.tables[k] = x.levels[from].table
			}
		}
		for from := k + 1; from < concurrencyLevels && c.tables[k] == nil; from++ {
			if x.levels[from] != nil {
				c.tables[k] = x.levels[from].table
			}
		}
	}
}

func differ(now, then []time.Duration) bool {
	for k := range now {
		if a, b := float64(now[k]), float64(then[k]); a > replanFactor*b || b > replanFactor*a {
			return true
		}
	}
	return false
}

// compare takes note of how far an observation was from what was believed. It answers by how much the machine has
// changed: 1 unless most of the recent observations are off to one side, and by more than what is usual.
func (o *observed) noteRatio(ratio float64) float64 {
	x := math.Log(ratio)
	copy(o.logs[1:], o.logs[:recentRatios-1])
	o.logs[0] = x
	o.deviation += (min(math.Abs(x), maxDeviation) - o.deviation) / deviationSpan
	o.above, o.below = o.above<<1, o.below<<1
	switch {
	case x > minLogRatio:
		o.above |= 1
	case x < -minLogRatio:
		o.below |= 1
	}
	if bits.OnesCount16(o.above) < changedMajority && bits.OnesCount16(o.below) < changedMajority {
		return 1
	}
	sorted := o.logs
	slices.Sort(sorted[:])
	if by := sorted[recentRatios/2]; math.Abs(by) > max(minLogRatio, 2*o.deviation) {
		return math.Exp(by)
	}
	return 1
}

// shift moves every size along with the machine.
func (o *observed) rescale(by float64) {
	o.above, o.below = 0, 0
	for k, r := range o.rings {
		if r == nil {
			continue
		}
		// Sizes with observations of the changed machine among their own are off by less.
		scale := by
		if o.table != nil {
			scale = by * float64(o.table[k]) / r.median
		}
		if (scale > 1) != (by > 1) {
			continue
		}
		for i := range r.took {
			r.took[i] = min(r.took[i]*scale, maxBelieved)
		}
		r.updateMedian()
	}
}
