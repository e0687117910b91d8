package profile

import (
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

const (
	// observations after which a size, or a variant on a device type, has an answer of its own
	minObservations   = 5
	ringSize          = 15    // observations of a size that are remembered
	maxAnchors        = 32    // sizes that a line is drawn through, at most
	concurrencyLevels = 8     // levels with a table of their own; a higher concurrency counts as the last
	recentRatios      = 16    // observations by which a change of the machine is recognised
	changedMajority   = 13    // of them must be off to one side
	minLogRatio       = 0.095 // by which they must be off, as a logarithm: a tenth
	// maxDeviation bounds what an observation adds to the usual deviation, so that an accident does not make a change
	// look usual.
	maxDeviation  = 0.5
	deviationSpan = 64  // observations over which the deviation is smoothed
	replanFactor  = 1.1 // a belief that changes by more than this factor is worth a new plan
	// of two sizes whose difference in latency says something about the cost of an item
	minSizeRatio  = 1.25
	maxFitGap     = 64                   // observations between two fits of a table, at most
	unseenLatency = time.Microsecond     // believed of what nothing is known about
	maxBelieved   = float64(Unknown / 2) // believed of anything that was observed, at most
)

// Learned is a Profile that starts with few beliefs and learns a table from observations. Its base is a line through
// the sizes seen, since latency is close to linear in the items (Kairos §5.1). On the line, every size that was seen
// often enough answers with the median of its last observations. A prior, where there is one, takes the place of the
// line, scaled to the observations.
//
// A variant without observations on a device type is believed to be fast. A router that compares latencies then tries
// it, and after a few batches its latency is known. If it were Unknown, no router would try it. For the same reason the
// line is not continued far beyond the sizes seen: by the ratio of the largest to the smallest size, and at least by a
// factor of two, up and down. Beyond that it is constant; below that latency is proportional to the items. Otherwise
// noise in a few large sizes could make a line that is flat, and small queries would never be tried.
//
// Latency never falls with items. When most of the last observations lie on one side of the beliefs, the machine has
// changed. Then sizes that were not seen since are rescaled like those that were.
type Learned struct {
	beliefs
	spec    *serving.Spec
	learned []learned // by variant*devices + device type
	epoch   uint64

	// Working memory.
	points  []anchor
	slopes  []float64
	scratch []float64
	sizes   []size
	blocks  []size
}

// size is the belief about a size class with enough observations.
type size struct {
	class int
	rank  int // its position among all sizes seen
	// took is in nanoseconds, weight in sizes pooled
	took, weight float64
}

// learned is the observations of a variant on a device type.
type learned struct {
	levels [concurrencyLevels]*observed // by concurrency-1; nil before the first observation
}

// observed is the observations at one concurrency.
type observed struct {
	rings []*ring // by size class; nil before the first observation
	// number of observations
	seen      uint64
	nextFit   uint64          // number of the observation at which the table is made again
	table     []time.Duration // by size class; nil while too little was seen
	published []time.Duration // the table when it last moved the epoch
	// logs are the logarithms of the last ratios of an observed time to the believed one, of sizes that are known.
	logs         [recentRatios]float64 // of the ratio
	above, below uint16                // one bit for each of logs, the newest lowest
	deviation    float64               // smoothed magnitude of the logarithms
}

// NewLearned returns a profile for spec without observations. prior is the profile that is believed before; nil for
// none.
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

// Grow implements Learner. Observations are kept, but for fresh variants. Frozen profiles do not change.
func (l *Learned) Grow(spec *serving.Spec, measured Profile, fresh []serving.VariantID) {
	l.spec, l.prior = spec, measured
	var cells []int32
	for _, v := range fresh {
		for d := range l.devices {
			cells = append(cells, int32(int(v)*l.devices+d))
		}
	}
	l.learned = serving.Cleared(l.learned, cells)
	l.cells = serving.Renew(l.cells, cells, func(at int32) believed {
		return believed{maxItems: spec.Variants[int(at)/l.devices].MaxBatch}
	})
}

// Epoch implements Learner.
func (l *Learned) Epoch() uint64 { return l.epoch }

// Frozen implements Learner. It copies the tables.
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

// Stretches returns those of the prior: how latency depends on the length of queries is not learned.
func (l *Learned) Stretches() *Stretches { return StretchesOf(l.prior) }

// Learner implements Profile.
func (l *Learned) Learner() Learner { return l }

// Observe implements Learner. It allocates when it sees a size for the first time, and not afterwards.
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
	// More observations change a table less, and a larger table takes more time to fit.
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

// linkLevels gives every concurrency its table, else that of the next lower, else of the next higher concurrency that
// has one.
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
