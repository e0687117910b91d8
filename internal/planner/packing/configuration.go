package packing

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Configuration is one way to run an instance of a function: the b, c and g of INFless with the values that follow
// from them.
type Configuration struct {
	Variant serving.VariantID
	Batch   int // items
	// Device is the device type that Latency is for: a part of a machine, or a type of machine taken as a whole.
	Device serving.DeviceTypeID
	Whole  bool
	// Threads, Percent of one accelerator, and Memory in bytes are what an instance takes of its machine. A whole
	// machine is taken with all it has.
	Threads, Percent int
	Memory           int64
	// Resources weighs Threads and Percent by beta, in per cent of an accelerator.
	Resources    float64
	Latency      time.Duration // believed time of a full batch
	BatchTimeout time.Duration // longest time a batch may be filled
	Low, Up      float64       // queries/s between which batches fill in time and none waits for the one before (Eq. 1)
}

// Bounds returns Eq. 1 in items/s, for a batch that takes t within an objective; ok is false where the batch cannot be
// used. As the equation is written, batches per second are rounded before they are multiplied with the batch, unless
// exact.
//
// The equation leaves two things open. Rounding can push the lower bound of a batch that takes half the objective above
// the upper one; then both are the upper one. And a batch of one never waits for more; its lower bound is 1 (the
// authors' release), or 0 when exact.
func Bounds(batch int, t, within time.Duration, exact bool) (low, up float64, ok bool) {
	if batch == 1 && t > within || batch > 1 && t > within/2 {
		return 0, 0, false
	}
	b, runs := float64(batch), 1/t.Seconds()
	fills := 1 / (within - t).Seconds()
	if !exact {
		// A rate such as 1/0.05 that floating point misses by a hair is the whole number.
		runs, fills = math.Floor(runs*(1+roundingTolerance)), math.Ceil(fills*(1-roundingTolerance))
	}
	low, up = fills*b, runs*b
	if batch == 1 {
		low = 1
		if exact {
			low = 0
		}
	}
	return min(low, up), up, up > 0
}

// roundingTolerance is the relative error of floating point that rounding forgives.
const roundingTolerance = 1e-12

// space is the input that configurations are made from.
type space struct {
	believed profile.Profile
	spec     *serving.Spec
	devices  []serving.DeviceTypeID // parts, or whole types of machines where no parts are configured
	beta     float64
	o        *Options
}

// newSpace takes all parts that fit some worker. If there is none, it takes every type of machine that has a worker as
// a whole.
func newSpace(believed profile.Profile, spec *serving.Spec, o *Options) *space {
	x := &space{believed: believed, spec: spec, beta: o.Beta, o: o}
	parts := false
	for d, t := range spec.DeviceTypes {
		fits := func(w serving.Worker) bool { return fitsMachine(&spec.DeviceTypes[w.DeviceType], &t) }
		if !t.Part || t.Placed || t.Cores+t.Percent == 0 || !slices.ContainsFunc(spec.Workers, fits) {
			continue
		}
		parts = true
		if (o.Threads == 0 || t.Cores == o.Threads) && (o.Threads == 0 && o.Percent == 0 || t.Percent == o.Percent) {
			x.devices = append(x.devices, serving.DeviceTypeID(d))
		}
	}
	if !parts {
		for _, w := range spec.Workers {
			if !slices.Contains(x.devices, w.DeviceType) {
				x.devices = append(x.devices, w.DeviceType)
			}
		}
		slices.Sort(x.devices)
	}
	return x
}

// fitsMachine reports whether a machine has room for a part.
func fitsMachine(machine, part *serving.DeviceType) bool {
	return part.Cores <= machine.Cores && (part.Percent == 0 || machine.Accelerators > 0) &&
		(machine.MemoryBytes == 0 || part.MemoryBytes <= machine.MemoryBytes)
}

// weight returns threads and per cents as resources.
func (x *space) weight(threads, percent int) float64 {
	return x.beta*float64(threads) + float64(percent)
}

// variants returns the variants of a stage that are not broken and reach the app's floor, the most accurate first.
func (x *space) variants(s serving.StageID, broken []bool) (out []serving.VariantID) {
	for _, v := range x.spec.Stages[s].Variants {
		if !broken[v] && !x.spec.BelowFloor(v) {
			out = append(out, v)
		}
	}
	slices.SortStableFunc(out, func(a, b serving.VariantID) int {
		return cmp.Compare(x.spec.Variants[b].Accuracy, x.spec.Variants[a].Accuracy)
	})
	return out
}

// configurationsOf lists what a function can run as: its most accurate variant that is fast enough on any part, and
// fits.
func (x *space) configurationsOf(f *Function, broken []bool) []Configuration {
	for _, v := range x.variants(f.stage, broken) {
		if out := x.configurations(v, f.Budget, f.Items, x.o.Late); len(out) > 0 {
			return out
		}
	}
	return nil
}

// configurations lists the configurations of a variant within an objective, the largest batches first (Algorithm 1),
// then by device. items is the mean size of a query. See Options.Late for late.
func (x *space) configurations(v serving.VariantID, within time.Duration, items float64,
	late bool) (out []Configuration) {
	variant := &x.spec.Variants[v]
	top := variant.MaxBatch
	if x.o.Single {
		top = 1
	}
	for _, d := range x.devices {
		device := &x.spec.DeviceTypes[d]
		for b := 1; b <= top; b *= 2 {
			c := Configuration{
				Variant: v, Batch: b, Device: d, Whole: !device.Part, Threads: device.Cores, Percent: device.Percent,
				Memory: device.MemoryBytes,
			}
			percent := device.Percent
			if c.Whole {
				percent = 100 * device.Accelerators
			}
			if c.Resources = x.weight(device.Cores, percent); c.Resources <= 0 {
				c.Resources = 1 // a machine with neither threads nor accelerators
			}
			need := variant.MemoryBytes + int64(b)*variant.ItemBytes
			if device.MemoryBytes == 0 {
				c.Memory = need
			} else if need > device.MemoryBytes {
				break
			}
			took := x.believed.Latency(v, d, b, 1)
			if took >= profile.Unknown {
				break
			}
			c.Latency = max(time.Duration(float64(took)*x.o.Latency), 1)
			ok := false
			if late {
				c.Up = 1 / c.Latency.Seconds()
				if !x.o.Exact {
					c.Up = math.Floor(c.Up * (1 + roundingTolerance))
				}
				c.Up *= float64(b)
				ok = c.Latency <= within && c.Up > 0
			} else {
				c.Low, c.Up, ok = Bounds(b, c.Latency, within, x.o.Exact)
			}
			if !ok {
				continue
			}
			if c.Low, c.Up = c.Low/items, c.Up/items; b > 1 {
				c.BatchTimeout = within - c.Latency
			}
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b Configuration) int { return cmp.Compare(b.Batch, a.Batch) })
	return out
}
