package profile

import "math/bits"

// Sizes up to exactSizes have classes of their own. Above, each doubling has exactSizes/2 classes, so that no class is
// wider than 0.8 %.
const exactSizes = 256

// classOf returns the class of a size (>= 1).
func classOf(items int) int {
	x := uint(items - 1)
	if x < exactSizes {
		return int(x)
	}
	shift := bits.Len(x) - 8
	return exactSizes + (shift-1)*exactSizes/2 + int(x>>shift) - exactSizes/2
}

// largestIn returns the largest size of a class.
func largestIn(class int) int {
	if class < exactSizes {
		return class + 1
	}
	octave, at := (class-exactSizes)/(exactSizes/2), (class-exactSizes)%(exactSizes/2)
	return (at + exactSizes/2 + 1) << (octave + 1)
}
