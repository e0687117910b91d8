package scale

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// peaks remembers the highest of a quantity over a time that moves on: by the slice of it, so that it is exact to a
// slice.
type peaks struct {
	most   [peakSlices]float64
	newest serving.Time // number of the newest slice
}

const peakSlices = 32

// highest takes up a value and returns the highest of the last span, and of up to a slice more.
func (p *peaks) highest(now serving.Time, span time.Duration, value float64) float64 {
	slice := now / max(serving.Time(span)/(peakSlices-1), 1)
	for k := max(p.newest+1, slice-peakSlices+1); k <= slice; k++ {
		p.most[k%peakSlices] = 0
	}
	p.newest = slice
	p.most[slice%peakSlices] = max(p.most[slice%peakSlices], value)
	out := 0.0
	for _, m := range p.most {
		out = max(out, m)
	}
	return out
}
