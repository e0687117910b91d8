package scale

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// slidingMax is the maximum of a quantity over a sliding span. It keeps one maximum per slice, so that the span is
// exact to a slice.
type slidingMax struct {
	most   [peakSlices]float64
	newest serving.Time // number of the newest slice
}

const peakSlices = 32

// highest records a value at now and returns the maximum over the last span and at most one slice more.
func (p *slidingMax) highest(now serving.Time, span time.Duration, value float64) float64 {
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
