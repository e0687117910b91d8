package infless

import (
	"math"
	"time"
)

// cheapest leaves of a function's configurations the one with which a query costs least (BATCH: a platform charges for the
// resources of an instance while it runs). Its batches are filled over the top of the platform, from all queries of the
// function: those of a load take so long to come, and with the run itself that must be within the objective. Where no batch does,
// it is the fastest of batches of one. BATCH works with a percentile of waits under fitted arrivals; INFless does not say how it
// was rebuilt, and here the mean has to do.
func cheapest(all []Configuration, load, items float64, within time.Duration) []Configuration {
	best, least := -1, math.Inf(1)
	for k := range all {
		c := &all[k]
		fills := time.Duration(0)
		if c.Batch > 1 {
			s := float64(c.Batch-1) / (load * items)
			if !(s <= within.Seconds()) {
				continue
			}
			fills = time.Duration(s * float64(time.Second))
		}
		if fills+c.Took > within {
			continue
		}
		if cost := c.Resources * c.Took.Seconds() / float64(c.Batch); cost < least {
			best, least = k, cost
		}
	}
	if best < 0 {
		return nil
	}
	return all[best : best+1]
}

// fastest leaves of every batch size the configuration that carries most, of equals the one that takes less.
func fastest(all []Configuration) (out []Configuration) {
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
