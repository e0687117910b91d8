// Package truth is how simulated machines really behave. It knows nothing of serving/profile, what planners believe: an
// experiment in which both were one would confirm itself. Both may start from the same measured table, which is plain
// data in serving.
package truth

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"time"

	"github.com/sluice-serving/sluice/algo/interp"
	"github.com/sluice-serving/sluice/serving"
)

// Model answers how long things take in the simulated world. It may draw from its own source of chance.
type Model interface {
	// Service returns the time of a batch of items of v on d while concurrency batches, this one included, run there:
	// on the instance, or on all instances that share its worker (fleet.AtOnce).
	Service(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration
	// Load returns the time to bring v up on d.
	Load(v serving.VariantID, d serving.DeviceTypeID) time.Duration
}

// Noise is how service times scatter around their mean.
type Noise uint8

const (
	// Lognormal scatters with the measured mean and standard deviation, skewed to the right as run times are.
	Lognormal Noise = iota
	// Exact takes the measured mean every time.
	Exact
	// Exponential scatters with the measured mean, without memory: for comparison with queueing theory.
	Exponential
)

// Table is a Model from measured points, interpolated linearly between batch sizes.
type Table struct {
	// Overhead is added to every service time: what a batch costs outside the measured run.
	Overhead time.Duration

	noise   Noise
	rng     *rand.Rand
	devices int
	cells   []cell
}

type cell struct {
	levels [][]moments // by concurrency-1, then items-1
	load   time.Duration
}

type moments struct {
	mean      float64 // ns
	mu, sigma float64 // of the logarithm
}

// NewTable builds the model of every measured variant of spec.
func NewTable(spec *serving.Spec, m serving.Measurements, noise Noise, rng *rand.Rand) (*Table, error) {
	t := &Table{
		noise: noise, rng: rng, devices: len(spec.DeviceTypes),
		cells: make([]cell, len(spec.Variants)*len(spec.DeviceTypes)),
	}
	points := make(map[int]map[int][]serving.LatencyPoint)
	for i, p := range m.Latency {
		if p.Variant < 0 || int(p.Variant) >= len(spec.Variants) || p.DeviceType < 0 ||
			int(p.DeviceType) >= t.devices || p.Items < 1 || p.Concurrency < 1 || p.Mean <= 0 {
			return nil, fmt.Errorf("latency point %d: variant %d, device type %d, items %d, concurrency %d or mean "+
				"%v is out of range", i, p.Variant, p.DeviceType, p.Items, p.Concurrency, p.Mean)
		}
		at := int(p.Variant)*t.devices + int(p.DeviceType)
		if points[at] == nil {
			points[at] = make(map[int][]serving.LatencyPoint)
		}
		points[at][p.Concurrency] = append(points[at][p.Concurrency], p)
	}
	for at, levels := range points {
		top := 0
		for c := range levels {
			top = max(top, c)
		}
		for c := 1; c <= top; c++ {
			level := levels[c]
			for above := c + 1; len(level) == 0; above++ {
				level = levels[above]
			}
			t.cells[at].levels = append(t.cells[at].levels, interpolateMoments(level, spec.Variants[at/t.devices].MaxBatch))
		}
	}
	for _, l := range m.Load {
		t.cells[int(l.Variant)*t.devices+int(l.DeviceType)].load = l.Load
	}
	return t, nil
}

func interpolateMoments(points []serving.LatencyPoint, maxBatch int) []moments {
	points = append([]serving.LatencyPoint(nil), points...)
	sort.Slice(points, func(i, j int) bool { return points[i].Items < points[j].Items })
	var xs, means, devs []float64
	for _, p := range points {
		if n := len(xs); n > 0 && xs[n-1] == float64(p.Items) {
			continue
		}
		xs, means, devs = append(xs, float64(p.Items)), append(means, float64(p.Mean)), append(devs, float64(p.StdDev))
	}
	out := make([]moments, maxBatch)
	for i := range out {
		mean, _ := interp.Linear(xs, means, float64(i+1))
		dev, _ := interp.Linear(xs, devs, float64(i+1))
		// The log-normal with this mean and deviation: variance of the logarithm ln(1 + (dev/mean)^2).
		s2 := math.Log1p(dev * dev / (mean * mean))
		out[i] = moments{mean: mean, mu: math.Log(mean) - s2/2, sigma: math.Sqrt(s2)}
	}
	return out
}

// WithRand returns the same machines with another source of chance: a table is worked out once for many runs.
func (t *Table) WithRand(rng *rand.Rand) *Table {
	out := *t
	out.rng = rng
	return &out
}

// Service implements Model. A (variant, device type) that was never measured takes an hour, so that it shows.
func (t *Table) Service(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration {
	c := &t.cells[int(v)*t.devices+int(d)]
	if len(c.levels) == 0 {
		return time.Hour
	}
	level := min(concurrency, len(c.levels))
	values := c.levels[level-1]
	m := &values[min(max(items, 1), len(values))-1]
	scale := 1.0
	if items > len(values) {
		scale *= float64(items) / float64(len(values))
	}
	if concurrency > level {
		scale *= float64(concurrency) / float64(level)
	}
	var ns float64
	switch t.noise {
	case Exact:
		ns = m.mean
	case Exponential:
		ns = m.mean * t.rng.ExpFloat64()
	default:
		if m.sigma == 0 {
			ns = m.mean
		} else {
			ns = math.Exp(m.mu + m.sigma*t.rng.NormFloat64())
		}
	}
	return max(time.Duration(ns*scale)+t.Overhead, 1)
}

// ShareWithin returns the share of the runs of items of v on d, each alone, that take at most limit, Overhead included; 0
// for what was never measured.
func (t *Table) ShareWithin(v serving.VariantID, d serving.DeviceTypeID, items int, limit time.Duration) float64 {
	c := &t.cells[int(v)*t.devices+int(d)]
	if len(c.levels) == 0 || items < 1 || items > len(c.levels[0]) {
		return 0
	}
	m, left := &c.levels[0][items-1], float64(limit-t.Overhead)
	switch {
	case left <= 0:
		return 0
	case t.noise == Exponential:
		return -math.Expm1(-left / m.mean)
	case t.noise == Exact || m.sigma == 0:
		if m.mean <= left {
			return 1
		}
		return 0
	}
	return math.Erfc((m.mu-math.Log(left))/(m.sigma*math.Sqrt2)) / 2
}

// Load implements Model.
func (t *Table) Load(v serving.VariantID, d serving.DeviceTypeID) time.Duration {
	return max(t.cells[int(v)*t.devices+int(d)].load, 1)
}
