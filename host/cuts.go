package host

import (
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/config"
	"github.com/sluice-serving/sluice/serving"
)

// withCuts adds what the parts that placements give instances by their cores take, where a profile does not say it: with
// c of a machine's C threads a run takes C/c times as long as on the whole machine, and as many runs at once as the part
// has slots do not slow each other. A model seldom gains C times from C threads, so a part that is measured is faster.
func (o *Opened) withCuts(m serving.Measurements) serving.Measurements {
	for _, c := range o.tables.Cuts {
		known := make(map[serving.VariantID]bool)
		for _, p := range m.Latency {
			if p.DeviceType == c.Part {
				known[p.Variant] = true
			}
		}
		m = derive(m, c, known, float64(o.Spec().DeviceTypes[c.Of].Cores)/float64(c.Cores))
		if len(known) == 0 && o.runsModels() {
			o.options.Notice(fmt.Sprintf("no profile has rows of device type %q, %d of the %d cores of %q: its latency "+
				"is taken to be that of %q times %.3g; 'sluice profile' measures it", o.Spec().DeviceTypes[c.Part].Name,
				c.Cores, o.Spec().DeviceTypes[c.Of].Cores, o.Spec().DeviceTypes[c.Of].Name,
				o.Spec().DeviceTypes[c.Of].Name, float64(o.Spec().DeviceTypes[c.Of].Cores)/float64(c.Cores)))
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
	return m
}
