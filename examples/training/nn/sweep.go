package nn

import "math"

// The functions here pass over all activations of a layer. They are bound by the memory bandwidth of a core, so they
// are fused where possible and have no unpredictable branches.

// dotsGo returns the sum of x and that of x times y.
func dotsGo(x, y []float32) (sum, dot float32) {
	y = y[:len(x)]
	for i, v := range x {
		sum += v
		dot += v * y[i]
	}
	return sum, dot
}

// shiftGo sets to to max(from·scale + by, 0).
func shiftGo(to, from []float32, scale, by float32) {
	from = from[:len(to)]
	for i, v := range from {
		to[i] = positive(v*scale + by)
	}
}

// positive is max(v, 0); NaN becomes NaN or 0.
func positive(v float32) float32 {
	b := math.Float32bits(v)
	return math.Float32frombits(b &^ uint32(int32(b)>>31))
}

// combineGo sets d to a·d + b·z + c.
func combineGo(d, z []float32, a, b, c float32) {
	z = z[:len(d)]
	for i, v := range d {
		d[i] = a*v + b*z[i] + c
	}
}

// rectifyGo clears gradients where the rectifier's output y, which is never negative, is zero: the sign of the negated
// bits is the mask.
func rectifyGo(y, dy []float32) {
	dy = dy[:len(y)]
	for i, v := range y {
		keep := uint32(-int32(math.Float32bits(v)) >> 31)
		dy[i] = math.Float32frombits(math.Float32bits(dy[i]) & keep)
	}
}
