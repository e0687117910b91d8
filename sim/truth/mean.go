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

// LongMean is Mean for a batch that is padded to a length.
func (t *Table) LongMean(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int,
	length int32) (mean time.Duration, ok bool) {
	mean, ok = t.Mean(v, d, items, concurrency)
	if !ok || t.Stretch == nil {
		return mean, ok
	}
	return max(t.Stretch(v, d, mean-t.overhead(d), length)+t.overhead(d), 1), true
}

// LongChance is Chance for a batch that is padded to a length. The stretch grows evenly with the measured time.
func (t *Table) LongChance(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int, limit time.Duration,
	length int32) float64 {
	if t.Stretch == nil {
		return t.Chance(v, d, items, concurrency, limit)
	}
	at, twice := t.Stretch(v, d, time.Hour, length), t.Stretch(v, d, 2*time.Hour, length)
	left := float64(limit - t.overhead(d) - at)
	measured := time.Hour + time.Duration(left/float64(twice-at)*float64(time.Hour))
	return t.Chance(v, d, items, concurrency, measured+t.overhead(d))
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
