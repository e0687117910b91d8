package board

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Latencies are counted in Buckets buckets, BucketsPerOctave to every doubling, from LowestLatency on. The first bucket
// has everything below, the last one everything above: 0.1 ms to 26 s, about 19 % wide each.
const (
	Buckets          = 72
	BucketsPerOctave = 4
	LowestLatency    = 100 * time.Microsecond
)

// bucketOf returns the bucket of a latency.
func bucketOf(d time.Duration) int {
	if d <= LowestLatency {
		return 0
	}
	return min(int(math.Log2(float64(d)/float64(LowestLatency))*BucketsPerOctave), Buckets-1)
}

// bucketStart returns the lower end of a bucket, in ms.
func bucketStart(b int) float64 {
	return float64(LowestLatency) / 1e6 * math.Exp2(float64(b)/BucketsPerOctave)
}

// counts is what happened to the queries of one app in one step of time. Arrivals count when they arrive, the rest when
// it ends.
type counts struct {
	offered, served, late, dropped, refused, failed, cancelled uint32

	accuracy float64 // sum over served queries
	second   uint32  // of them, whose answer is a second one
	// Sums over the tasks whose batch began in the step: waited for earlier queries of the stream and for an instance,
	// waited on the instance for a batch; and over the tasks whose batch has ended: run time.
	tasks, ended       uint32
	routed, held, runs time.Duration
	batches, items     uint32 // that began
	// beyond counts served queries that took longer than their app's objective, which the buckets do not tell exactly.
	beyond  uint32
	latency [Buckets]uint32
}

func (c *counts) add(o *counts) {
	c.offered += o.offered
	c.served += o.served
	c.late += o.late
	c.dropped += o.dropped
	c.refused += o.refused
	c.failed += o.failed
	c.cancelled += o.cancelled
	c.accuracy += o.accuracy
	c.second += o.second
	c.tasks += o.tasks
	c.ended += o.ended
	c.routed += o.routed
	c.held += o.held
	c.runs += o.runs
	c.batches += o.batches
	c.items += o.items
	c.beyond += o.beyond
	for b, n := range o.latency {
		c.latency[b] += n
	}
}

// violations are the queries that were not served in time; cancelled ones count for nothing (docs/metrics.md).
func (c *counts) violations() uint32 { return c.late + c.dropped + c.refused + c.failed }

// judged are the queries that have ended and were not cancelled.
func (c *counts) judged() uint32 { return c.served + c.dropped + c.refused + c.failed }

// percentile returns a latency percentile of served queries in ms, interpolated within its bucket, and on the right
// side of the objective, if there is one; 0 when none was served.
func (c *counts) percentile(p, objective float64) float64 {
	x := c.interpolated(p)
	switch within := float64(c.served - c.beyond); {
	case objective <= 0 || c.served == 0:
		return x
	case within >= p/100*float64(c.served):
		return math.Min(x, objective)
	}
	return math.Max(x, objective)
}

func (c *counts) interpolated(p float64) float64 {
	total := uint64(0)
	for _, n := range c.latency {
		total += uint64(n)
	}
	if total == 0 {
		return 0
	}
	rank := math.Max(1, math.Ceil(p/100*float64(total)))
	seen := 0.0
	for b, n := range c.latency {
		if next := seen + float64(n); next >= rank {
			return bucketStart(b) * math.Exp2((rank-seen)/float64(n)/BucketsPerOctave)
		}
		seen += float64(c.latency[b])
	}
	return bucketStart(Buckets)
}

// block is one step of time of all apps.
type block struct {
	at       int64 // start, in units of the ring's step
	apps     []counts
	gone     counts   // of apps whose place in the tables is used again
	variants []uint32 // by VariantID: tasks that ended well on it
	stages   []uint32 // by StageID: tasks that began
	dollars  float64  // spent
	busy     float64  // slot time in s
	slots    float64  // slot time that existed, in s
}

func (b *block) reset(at int64, apps, variants, stages int) {
	b.at, b.dollars, b.busy, b.slots, b.gone = at, 0, 0, 0, counts{}
	b.apps = cleared(b.apps, apps)
	b.variants = cleared(b.variants, variants)
	b.stages = cleared(b.stages, stages)
}

// forget has what was counted for fresh identifiers count for nobody in particular.
func (b *block) forget(fresh *serving.Fresh) {
	for _, a := range fresh.Apps {
		if int(a) < len(b.apps) {
			b.gone.add(&b.apps[a])
		}
	}
	serving.Forget(b.apps, fresh.Apps, counts{})
	serving.Forget(b.variants, fresh.Variants, 0)
	serving.Forget(b.stages, fresh.Stages, 0)
}

func cleared[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

func (b *block) add(o *block) {
	for a := range o.apps {
		if a < len(b.apps) {
			b.apps[a].add(&o.apps[a])
		}
	}
	b.gone.add(&o.gone)
	addTo(b.variants, o.variants)
	addTo(b.stages, o.stages)
	b.dollars += o.dollars
	b.busy += o.busy
	b.slots += o.slots
}

func addTo(to, from []uint32) {
	for k := range min(len(to), len(from)) {
		to[k] += from[k]
	}
}

// ring has the latest blocks of a step of time. A block exists only where something was recorded; gaps are empty time.
type ring struct {
	blocks []block
	n      int // recorded so far
}

func newRing(n int) *ring { return &ring{blocks: make([]block, n)} }

// shorten drops the oldest blocks until at most n are left.
func (r *ring) shorten(n int) {
	if n >= len(r.blocks) {
		return
	}
	kept := make([]block, n)
	for k := max(0, r.n-n); k < r.n; k++ {
		kept[k%n] = r.blocks[k%len(r.blocks)]
	}
	r.blocks = kept
}

// last returns the newest block; nil for none.
func (r *ring) last() *block {
	if r.n == 0 {
		return nil
	}
	return &r.blocks[(r.n-1)%len(r.blocks)]
}

// next takes the slot of the oldest block for a new one.
func (r *ring) next() *block {
	r.n++
	return r.last()
}

// since calls see for every block that starts at or after from, oldest first.
func (r *ring) since(from int64, see func(*block)) {
	for k := max(0, r.n-len(r.blocks)); k < r.n; k++ {
		if b := &r.blocks[k%len(r.blocks)]; b.at >= from {
			see(b)
		}
	}
}
