// Package slidingmax keeps the maximum of a quantity over the last span of time.
package slidingmax

// Max is the maximum of a quantity that is at least 0 over a sliding span. It keeps one maximum per slice, so that the
// span is exact to a slice. The zero value has seen nothing.
type Max struct {
	most   [slices]float64
	newest int64 // number of the newest slice
}

const slices = 32

// Highest records a value at now and returns the maximum over the last span and at most one slice more. Times are in
// one unit and do not go back.
func (p *Max) Highest(now, span int64, value float64) float64 {
	slice := now / max(span/(slices-1), 1)
	for k := max(p.newest+1, slice-slices+1); k <= slice; k++ {
		p.most[k%slices] = 0
	}
	p.newest = slice
	p.most[slice%slices] = max(p.most[slice%slices], value)
	out := 0.0
	for _, m := range p.most {
		out = max(out, m)
	}
	return out
}
