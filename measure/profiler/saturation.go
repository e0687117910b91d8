package profiler

import (
	"cmp"
	"slices"
)

// Saturation says how far batches at once pay for one variant at one batch size: Scrooge (§3.2) takes the level at
// which throughput is highest as the capacity of a machine, since beyond it batches only hold each other up.
type Saturation struct {
	Variant, DeviceType string
	Batch               int
	MaxConcurrency      int     // the highest number of batches at once that was measured
	Concurrency         int     // the number at which throughput is highest
	Throughput          float64 // there, in items/s
	SingleThroughput    float64 // of one batch at a time, in items/s; 0 when that was not measured
	BatchMicros         float64 // mean time of a batch there, in microseconds
}

// minGain is the least relative gain for which more batches at once are taken: means are known to a few per cent,
// and every batch at once more makes all of them slower.
const minGain = 0.02

// Saturations lists, for every variant, device type and batch size measured at several levels of concurrency, where
// more stops paying.
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
