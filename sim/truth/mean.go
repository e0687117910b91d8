package truth

import (
	"math"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Mean returns the mean of Service. ok is false for a pair of variant and device type that was never measured.
func (t *Table) Mean(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) (mean time.Duration,
	ok bool) {
	m, scale := t.moments(v, d, items, concurrency)
	if m == nil {
		return 0, false
	}
	return max(time.Duration(m.mean*scale)+t.overhead(d), 1), true
}

// Chance returns the share of batches that take at most limit, overheads included, while as many run at once as
// concurrency says. It is 0 for what was never measured.
func (t *Table) Chance(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int,
	limit time.Duration) float64 {
	m, scale := t.moments(v, d, items, concurrency)
	if m == nil {
		return 0
	}
	left := float64(limit-t.overhead(d)) / scale
	switch {
	case left <= 0:
		return 0
	case t.noise == Exponential:
		return -math.Expm1(-left / m.mean)
	case t.noise == Exact || m.sigma == 0:
		if math.Floor(m.mean) <= left { // Service cuts to whole nanoseconds
			return 1
		}
		return 0
	}
	return math.Erfc((m.mu-math.Log(left))/(m.sigma*math.Sqrt2)) / 2
}

// Levels returns the most batches at once that v was measured with on d.
func (t *Table) Levels(v serving.VariantID, d serving.DeviceTypeID) int {
	return len(t.cells[int(v)*t.devices+int(d)].levels)
}

// moments returns what Service draws from, and the factor on it; nil for what was never measured.
func (t *Table) moments(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) (*moments, float64) {
	c := &t.cells[int(v)*t.devices+int(d)]
	if len(c.levels) == 0 {
		return nil, 0
	}
	level := min(concurrency, len(c.levels))
	values := c.levels[level-1]
	scale := 1.0
	if items > len(values) {
		scale *= float64(items) / float64(len(values))
	}
	if concurrency > level {
		scale *= float64(concurrency) / float64(level)
	}
	return &values[min(max(items, 1), len(values))-1], scale
}
