// Package profile holds beliefs about latency. Planners, routers and batchers read them. Simulated machines do not:
// they follow sim/truth, so that an experiment does not confirm itself.
package profile

import (
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/interp"
	"github.com/sluice-serving/sluice/serving"
)

// Unknown is the believed latency of a variant that was never measured on a device type. It is longer than any
// objective, so that no plan relies on it.
const Unknown = time.Duration(math.MaxInt64 / 4)

// Profile answers how long a batch is believed to take.
type Profile interface {
	// Latency returns the believed time of a batch of items (>= 1) of variant v on device type d while concurrency (>=
	// 1) batches, this one included, run on the instance. It is Unknown when v was never measured on d.
	Latency(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration
	// Load returns the believed time to bring v up on d; 0 when it was never measured.
	Load(v serving.VariantID, d serving.DeviceTypeID) time.Duration
	// Learner returns the Learner to pass observed batches to; nil if the answers never change. It is part of this
	// interface so that a Profile around another one cannot lose it by accident.
	Learner() Learner
}

// Statistic returns the figure of a measured point that a Table believes.
type Statistic func(p serving.LatencyPoint) time.Duration

// The statistics that papers plan with: Proteus takes the median, RAMSIS the 95th percentile.
var (
	Mean Statistic = func(p serving.LatencyPoint) time.Duration { return p.Mean }
	P50  Statistic = func(p serving.LatencyPoint) time.Duration { return p.P50 }
	P90  Statistic = func(p serving.LatencyPoint) time.Duration { return p.P90 }
	P95  Statistic = func(p serving.LatencyPoint) time.Duration { return p.P95 }
	P99  Statistic = func(p serving.LatencyPoint) time.Duration { return p.P99 }
)

// ParseStatistic returns the statistic named mean, p50, p90, p95 or p99.
func ParseStatistic(name string) (Statistic, error) {
	switch name {
	case "mean":
		return Mean, nil
	case "p50":
		return P50, nil
	case "p90":
		return P90, nil
	case "p95":
		return P95, nil
	case "p99":
		return P99, nil
	}
	return nil, fmt.Errorf("latency statistic %q does not exist: use mean, p50, p90, p95 or p99", name)
}

// Table is a Profile from measured points. It interpolates linearly between batch sizes once, when it is made, so that
// a lookup is two slice reads. Latency never falls with items: a measured dip is noise, and rules that search for the
// largest batch in time rely on a rising latency.
type Table struct {
	devices   int
	cells     []cell // by variant*devices + device type
	stretches *Stretches
}

type cell struct {
	levels   [][]time.Duration // by concurrency-1, then items-1
	measured [][]bool          // whether the value was measured rather than interpolated
	load     time.Duration
}

// NewTable makes the table of every variant of spec, up to its MaxBatch, from measured points, to which it adds the
// measured overheads of batches. It keeps neither spec nor m. A variant without points on a device type stays Unknown
// there. NewTable fails when a point names a variant or device type that does not exist, or has a number that is not
// positive; load times with such names are ignored.
func NewTable(spec *serving.Spec, m serving.Measurements, statistic Statistic) (*Table, error) {
	t := &Table{devices: len(spec.DeviceTypes), cells: make([]cell, len(spec.Variants)*len(spec.DeviceTypes))}
	byCell := make(map[int]map[int][]serving.LatencyPoint)
	for i, p := range m.Latency {
		if int(p.Variant) >= len(spec.Variants) || int(p.DeviceType) >= t.devices || p.Variant < 0 || p.DeviceType < 0 {
			return nil, fmt.Errorf("latency point %d: variant %d or device type %d does not exist", i, p.Variant,
				p.DeviceType)
		}
		if p.Items < 1 || p.Concurrency < 1 || statistic(p) <= 0 {
			return nil, fmt.Errorf("latency point %d (variant %q, device type %q): items %d, concurrency %d, latency "+
				"%v must all be positive",
				i, spec.Variants[p.Variant].Name, spec.DeviceTypes[p.DeviceType].Name, p.Items, p.Concurrency,
				statistic(p))
		}
		at := int(p.Variant)*t.devices + int(p.DeviceType)
		if byCell[at] == nil {
			byCell[at] = make(map[int][]serving.LatencyPoint)
		}
		byCell[at][p.Concurrency] = append(byCell[at][p.Concurrency], p)
	}
	overheads := overheads(spec, m)
	for at, levels := range byCell {
		maxBatch := spec.Variants[at/t.devices].MaxBatch
		top := 0
		for c := range levels {
			top = max(top, c)
		}
		for c := 1; c <= top; c++ {
			points := levels[c]
			if len(points) == 0 {
				// A level that was not measured takes the next measured one above, which is never too optimistic.
				for above := c + 1; len(points) == 0; above++ {
					points = levels[above]
				}
			}
			values, counted := interpolate(points, maxBatch, statistic, overheads[at%t.devices])
			t.cells[at].levels = append(t.cells[at].levels, values)
			t.cells[at].measured = append(t.cells[at].measured, counted)
		}
	}
	t.fit(m.Memory)
	t.stretches = NewStretches(spec, m)
	for _, l := range m.Load {
		if int(l.Variant) < len(spec.Variants) && int(l.DeviceType) < t.devices && l.Variant >= 0 && l.DeviceType >= 0 {
			t.cells[int(l.Variant)*t.devices+int(l.DeviceType)].load = l.Load
		}
	}
	return t, nil
}

// fit forgets the batches that a device type lacks memory for: they are Unknown.
func (t *Table) fit(memory []serving.MemoryPoint) {
	for _, m := range memory {
		at := int(m.Variant)*t.devices + int(m.DeviceType)
		if m.MostItems < 1 || at >= len(t.cells) {
			continue
		}
		for k, level := range t.cells[at].levels {
			if n := m.MostItems; n < len(level) {
				t.cells[at].levels[k], t.cells[at].measured[k] = level[:n], t.cells[at].measured[k][:n]
			}
		}
	}
}

// overheads are those of batches, by device type.
func overheads(spec *serving.Spec, m serving.Measurements) []time.Duration {
	out := make([]time.Duration, len(spec.DeviceTypes))
	for _, o := range m.Overhead {
		if o.DeviceType >= 0 && int(o.DeviceType) < len(out) {
			out[o.DeviceType] = o.Batch
		}
	}
	return out
}

// interpolate returns the latencies of 1 to maxBatch items at one concurrency, and which of them were measured.
func interpolate(points []serving.LatencyPoint, maxBatch int, statistic Statistic,
	overhead time.Duration) ([]time.Duration, []bool) {
	points = append([]serving.LatencyPoint(nil), points...)
	sort.Slice(points, func(i, j int) bool { return points[i].Items < points[j].Items })
	var xs, ys []float64
	for _, p := range points {
		if n := len(xs); n > 0 && xs[n-1] == float64(p.Items) {
			ys[n-1] = max(ys[n-1], float64(statistic(p))) // measured twice: believe the slower
			continue
		}
		xs, ys = append(xs, float64(p.Items)), append(ys, float64(statistic(p)))
	}
	values, counted := make([]time.Duration, maxBatch), make([]bool, maxBatch)
	for i := range values {
		y, measured := interp.Linear(xs, ys, float64(i+1))
		values[i], counted[i] = time.Duration(math.Round(y))+overhead, measured
		if i > 0 && values[i] < values[i-1] {
			values[i] = values[i-1]
		}
	}
	return values, counted
}

// Latency implements Profile. Items beyond the variant's MaxBatch are Unknown. A concurrency above the highest measured
// level scales the latency at that level in proportion.
func (t *Table) Latency(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration {
	c := &t.cells[int(v)*t.devices+int(d)]
	if len(c.levels) == 0 {
		return Unknown
	}
	level := min(concurrency, len(c.levels))
	values := c.levels[level-1]
	if items > len(values) || items < 1 {
		return Unknown
	}
	if concurrency > level {
		return values[items-1] * time.Duration(concurrency) / time.Duration(level)
	}
	return values[items-1]
}

// Load implements Profile.
func (t *Table) Load(v serving.VariantID, d serving.DeviceTypeID) time.Duration {
	return t.cells[int(v)*t.devices+int(d)].load
}

// Stretches returns how latency depends on the length of queries; see the function StretchesOf.
func (t *Table) Stretches() *Stretches { return t.stretches }

// Learner implements Profile: a table does not change.
func (t *Table) Learner() Learner { return nil }

// Measured is a MeasuredFunc for the table's points.
func (t *Table) Measured(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) bool {
	c := &t.cells[int(v)*t.devices+int(d)]
	if concurrency < 1 || concurrency > len(c.measured) || items < 1 || items > len(c.measured[concurrency-1]) {
		return false
	}
	return c.measured[concurrency-1][items-1]
}

// BatchLimit returns the largest batch of v on d, in items and at the given concurrency, that v accepts and that is
// believed to take at most within; 0 when not even one item does. It calls p O(log MaxBatch) times. Proteus §4 uses it
// with half the SLO.
func BatchLimit(p Profile, spec *serving.Spec, v serving.VariantID, d serving.DeviceTypeID, concurrency int,
	within time.Duration) int {
	top := spec.Variants[v].MaxBatch
	return sort.Search(top, func(i int) bool { return p.Latency(v, d, i+1, concurrency) > within })
}

// Constant is a Profile in which a batch takes Base plus PerItem times its items, whatever the variant and device type.
// It is for tests, examples and benchmarks.
type Constant struct{ Base, PerItem, LoadTime time.Duration }

// Latency implements Profile.
func (c Constant) Latency(_ serving.VariantID, _ serving.DeviceTypeID, items, _ int) time.Duration {
	return c.Base + time.Duration(items)*c.PerItem
}

// Load implements Profile.
func (c Constant) Load(serving.VariantID, serving.DeviceTypeID) time.Duration { return c.LoadTime }

// Learner implements Profile: nothing is learned.
func (c Constant) Learner() Learner { return nil }
