package host

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/serving"
)

// withCuts adds the latencies of the parts that placements give instances by their cores, where a profile has none.
// With c of a machine's C threads a run takes C/c times as long as on the whole machine, and the runs of a part do not
// slow each other. A model seldom gains as much from more threads, so that a part is faster once it is measured.
func (o *Opened) withCuts(m serving.Measurements) serving.Measurements {
	for _, c := range o.tables.Cuts {
		part, of := &o.Spec().DeviceTypes[c.Part], &o.Spec().DeviceTypes[c.Of]
		known := make(map[serving.VariantID]bool)
		for _, p := range m.Latency {
			if p.DeviceType == c.Part {
				known[p.Variant] = true
			}
		}
		factor := float64(of.Cores) / float64(c.Cores)
		m = derive(m, c, known, factor)
		if len(known) == 0 && o.Fleet().RunsModels() {
			o.options.Notice(fmt.Sprintf("no profile has rows of device type %q, %d of the %d cores of %q: its "+
				"latency is taken to be that of %q times %.3g; 'sluice profile' measures it", part.Name, c.Cores,
				of.Cores, of.Name, of.Name, factor))
		}
	}
	return m
}

// derive adds the rows of a part for the variants that are not known on it: those of the machine, with batches that run
// alone, times a factor.
func derive(m serving.Measurements, c config.Cut, known map[serving.VariantID]bool,
	factor float64) serving.Measurements {
	times := func(d time.Duration) time.Duration { return time.Duration(float64(d) * factor) }
	for _, p := range m.Latency[:len(m.Latency):len(m.Latency)] {
		if p.DeviceType != c.Of || p.Concurrency != 1 || known[p.Variant] {
			continue
		}
		p.DeviceType = c.Part
		p.Mean, p.StdDev, p.P50 = times(p.Mean), times(p.StdDev), times(p.P50)
		p.P90, p.P95, p.P99 = times(p.P90), times(p.P95), times(p.P99)
		for p.Concurrency = 1; p.Concurrency <= c.Slots; p.Concurrency++ {
			m.Latency = append(m.Latency, p)
		}
	}
	loaded := make(map[serving.VariantID]bool)
	for _, l := range m.Load {
		if l.DeviceType == c.Part {
			loaded[l.Variant] = true
		}
	}
	for _, l := range m.Load[:len(m.Load):len(m.Load)] {
		if l.DeviceType == c.Of && !loaded[l.Variant] {
			l.DeviceType = c.Part
			m.Load = append(m.Load, l)
		}
	}
	if !slices.ContainsFunc(m.Overhead, func(x serving.Overhead) bool { return x.DeviceType == c.Part }) {
		for _, x := range m.Overhead[:len(m.Overhead):len(m.Overhead)] {
			if x.DeviceType == c.Of {
				x.DeviceType = c.Part
				m.Overhead = append(m.Overhead, x)
			}
		}
	}
	return m
}
