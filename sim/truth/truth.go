// Package truth is how simulated machines really behave. It does not know serving/profile, which holds what planners
// believe: an experiment in which both were the same would confirm itself. Both may start from the same measured table,
// which is plain data in package serving.
package truth

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/interp"
	"github.com/sluice-serving/sluice/serving"
)

// Model returns how long things take in the simulated world.
type Model interface {
	// Draw draws what is random of a batch when it begins, from a source of random numbers of the model's own. Service
	// then takes the number.
	Draw(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) float64
	// Service returns the run time of a batch of items of v on d if concurrency batches run there from its beginning to
	// its end, this one included: on the instance, or on all instances that share its worker (fleet.View.Concurrency).
	// Where the number changes, a batch advances at each time at the speed of that time. drawn is from Draw.
	Service(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int, drawn float64) time.Duration
	// Load returns the time that it takes to load v on d until it is ready.
	Load(v serving.VariantID, d serving.DeviceTypeID) time.Duration
}

// Sample draws the run time of a batch beside which the same number of batches runs from its beginning to its end.
func Sample(m Model, v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration {
	return m.Service(v, d, items, concurrency, m.Draw(v, d, items, concurrency))
}

// Noise is how service times vary around their mean.
type Noise uint8

const (
	// Lognormal times have the measured mean and standard deviation, and are skewed to the right as run times are.
	Lognormal Noise = iota
	// Exact times are always the measured mean.
	Exact
	// Exponential times have the measured mean and no memory. They allow comparison with queueing theory.
	Exponential
)

// Table is a Model made from measured points. It interpolates linearly between batch sizes.
type Table struct {
	// Overhead is added to every service time: the part of a batch that profiling does not measure. The overheads of
	// the measurements are added beside it.
	Overhead time.Duration
	// Stretch says how long a batch takes that is padded to a length (serving.Query), if one of the measured length
	// takes a time; nil where lengths do not count.
	Stretch func(v serving.VariantID, d serving.DeviceTypeID, measured time.Duration, length int32) time.Duration

	noise     Noise
	rng       *rand.Rand
	devices   int
	cells     []cell
	overheads []time.Duration // measured, by device type
}

type cell struct {
	levels [][]moments // by concurrency-1, then items-1
	load   time.Duration
}

type moments struct {
	mean      float64 // ns
	mu, sigma float64 // mean and standard deviation of the logarithm
}

// NewTable builds the model of all variants of spec that m has points of. It does not keep spec or m; rng is kept and
// used by Service, and may be nil with noise Exact. It returns an error when a point is out of range.
func NewTable(spec *serving.Spec, m serving.Measurements, noise Noise, rng *rand.Rand) (*Table, error) {
	t := &Table{
		noise: noise, rng: rng, devices: len(spec.DeviceTypes),
		cells:     make([]cell, len(spec.Variants)*len(spec.DeviceTypes)),
		overheads: make([]time.Duration, len(spec.DeviceTypes)),
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
			t.cells[at].levels = append(t.cells[at].levels, interpolateMoments(level,
				spec.Variants[at/t.devices].MaxBatch))
		}
	}
	for _, o := range m.Overhead {
		t.overheads[o.DeviceType] = o.Batch
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
		// This log-normal has the measured mean and deviation: the variance of its logarithm is ln(1 + (dev/mean)^2).
		s2 := math.Log1p(dev * dev / (mean * mean))
		out[i] = moments{mean: mean, mu: math.Log(mean) - s2/2, sigma: math.Sqrt(s2)}
	}
	return out
}

// WithRand returns the same machines with another source of random numbers. The interpolated tables are shared, so that
// many runs can use one table.
func (t *Table) WithRand(rng *rand.Rand) *Table {
	out := *t
	out.rng = rng
	return &out
}

// Draw implements Model. It draws nothing for times that do not vary.
func (t *Table) Draw(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) float64 {
	m, _ := t.moments(v, d, items, concurrency)
	switch {
	case m == nil || t.noise == Exact:
		return 0
	case t.noise == Exponential:
		return t.rng.ExpFloat64()
	case m.sigma == 0:
		return 0
	}
	return t.rng.NormFloat64()
}

// Service implements Model. A pair of variant and device type that was never measured takes an hour, so that it is
// noticed. Beyond the largest measured batch or concurrency, times grow in proportion.
func (t *Table) Service(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int,
	drawn float64) time.Duration {
	took, ok := t.run(v, d, items, concurrency, drawn)
	if !ok {
		return time.Hour
	}
	return max(took+t.overhead(d), 1)
}

// Stretching is a Model of machines that take longer for longer queries.
type Stretching interface {
	Model
	// Stretches reports whether lengths count.
	Stretches() bool
	// ServiceOf is Service for a batch of queries with lengths, of which a model runs some after the others.
	ServiceOf(v serving.VariantID, d serving.DeviceTypeID, runs []serving.Run, concurrency int,
		drawn float64) time.Duration
	// Around returns the part of service times that is no run of a model.
	Around(d serving.DeviceTypeID) time.Duration
}

// Stretches implements Stretching.
func (t *Table) Stretches() bool { return t.Stretch != nil }

// Around implements Stretching.
func (t *Table) Around(d serving.DeviceTypeID) time.Duration { return t.overhead(d) }

// ServiceOf implements Stretching.
func (t *Table) ServiceOf(v serving.VariantID, d serving.DeviceTypeID, runs []serving.Run, concurrency int,
	drawn float64) (sum time.Duration) {
	for _, r := range runs {
		took, ok := t.run(v, d, r.Items, concurrency, drawn)
		if !ok {
			return time.Hour
		}
		if t.Stretch != nil {
			took = t.Stretch(v, d, took, r.Length)
		}
		sum += took
	}
	return max(sum+t.overhead(d), 1)
}

// run is the time of a batch of the measured length without overheads; ok is false where nothing was measured.
func (t *Table) run(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int,
	drawn float64) (took time.Duration, ok bool) {
	m, scale := t.moments(v, d, items, concurrency)
	if m == nil {
		return 0, false
	}
	ns := m.mean
	switch {
	case t.noise == Exponential:
		ns *= drawn
	case t.noise == Lognormal && m.sigma > 0:
		ns = math.Exp(m.mu + m.sigma*drawn)
	}
	return time.Duration(ns * scale), true
}

// ShareWithin returns the share of batches of items of v on d that take at most limit, Overhead included, when each
// runs alone. It is 0 for what was never measured.
func (t *Table) ShareWithin(v serving.VariantID, d serving.DeviceTypeID, items int, limit time.Duration) float64 {
	if c := &t.cells[int(v)*t.devices+int(d)]; len(c.levels) == 0 || items < 1 || items > len(c.levels[0]) {
		return 0
	}
	return t.Chance(v, d, items, 1, limit)
}

// overhead is what is added to the service times on a device type.
func (t *Table) overhead(d serving.DeviceTypeID) time.Duration { return t.Overhead + t.overheads[d] }

// Load implements Model.
func (t *Table) Load(v serving.VariantID, d serving.DeviceTypeID) time.Duration {
	return max(t.cells[int(v)*t.devices+int(d)].load, 1)
}
