package profiler

import (
	"cmp"
	"slices"
)

// Saturation is the concurrency with the highest throughput for one variant at one batch size. Scrooge (§3.2) takes
// that throughput as the capacity of a machine, as more concurrent batches only delay each other.
type Saturation struct {
	Variant, DeviceType string
	Batch               int
	MaxConcurrency      int     // highest concurrency that was measured
	Concurrency         int     // concurrency with the highest throughput
	Throughput          float64 // highest throughput, in items/s
	SingleThroughput    float64 // of one batch at a time, in items/s; 0 when not measured
	BatchMicros         float64 // mean time of a batch at the highest throughput
}

// minGain is the least relative gain in throughput that justifies more concurrent batches: means are known to a few per
// cent, and each further batch slows all of them.
const minGain = 0.02

// Saturations returns the saturation of every variant, device type and batch size that was measured at several
// concurrencies.
func (f *File) Saturations() (out []Saturation) {
	points := slices.Clone(f.Points)
	slices.SortFunc(points, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Variant, b.Variant), cmp.Compare(a.DeviceType, b.DeviceType),
			cmp.Compare(a.Batch, b.Batch), cmp.Compare(a.Concurrency, b.Concurrency))
	})
	for _, p := range points {
		if p.Interpolated {
			continue
		}
		n := len(out) - 1
		if n < 0 || out[n].Variant != p.Variant || out[n].DeviceType != p.DeviceType || out[n].Batch != p.Batch {
			out = append(out, Saturation{Variant: p.Variant, DeviceType: p.DeviceType, Batch: p.Batch})
			n++
		}
		x := &out[n]
		x.MaxConcurrency = p.Concurrency
		rate := float64(p.Batch*p.Concurrency) / p.Mean * 1e6
		if p.Concurrency == 1 {
			x.SingleThroughput = rate
		}
		if rate > x.Throughput*(1+minGain) {
			x.Concurrency, x.Throughput, x.BatchMicros = p.Concurrency, rate, p.Mean
		}
	}
	return slices.DeleteFunc(out, func(x Saturation) bool { return x.MaxConcurrency == 1 })
}
