package infless

import (
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/packing"
	"github.com/sluice-serving/sluice/serving"
)

// cheapest returns the configuration with which a query costs least (BATCH: a platform charges for the resources of an
// instance while it runs); for whole machines, one per type. BATCH fills batches on top of the platform, from all
// queries of the function. The time in which the load fills a batch, plus its run, must be within the objective. BATCH
// bounds a percentile of waits under fitted arrivals. INFless does not say how it rebuilt that; here the mean is
// bounded instead.
func cheapest(all []packing.Configuration, f *packing.Function) (out []packing.Configuration) {
	var types []serving.DeviceTypeID
	for k := range all {
		d := serving.DeviceTypeID(serving.None)
		if all[k].Whole {
			d = all[k].Device
		}
		if !slices.Contains(types, d) {
			types = append(types, d)
		}
	}
	for _, d := range types {
		among := slices.DeleteFunc(slices.Clone(all), func(c packing.Configuration) bool {
			return c.Whole != (d != serving.None) || c.Whole && c.Device != d
		})
		if best := cheapestOf(among, f.Load*f.Items, f.Budget); best >= 0 {
			out = append(out, among[best])
		}
	}
	return out
}

// cheapestOf returns the index of the cheapest configuration for a load in items/s, or -1.
func cheapestOf(all []packing.Configuration, items float64, within time.Duration) int {
	best, least := -1, math.Inf(1)
	for k := range all {
		c := &all[k]
		fills := time.Duration(0)
		if c.Batch > 1 {
			s := float64(c.Batch-1) / items
			if !(s <= within.Seconds()) {
				continue
			}
			fills = time.Duration(s * float64(time.Second))
		}
		if fills+c.Latency > within {
			continue
		}
		if cost := c.Resources * c.Latency.Seconds() / float64(c.Batch); cost < least {
			best, least = k, cost
		}
	}
	return best
}

// fastest returns for every batch size the configuration that carries most, of equal ones the smaller.
func fastest(all []packing.Configuration, _ *packing.Function) (out []packing.Configuration) {
	for k := range all {
		c := &all[k]
		n := len(out) - 1
		switch {
		case n < 0 || out[n].Batch != c.Batch:
			out = append(out, *c)
		case c.Up > out[n].Up || c.Up == out[n].Up && c.Resources < out[n].Resources:
			out[n] = *c
		}
	}
	return out
}
