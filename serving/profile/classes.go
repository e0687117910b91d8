package profile

import "math/bits"

// Sizes to fine are told apart one by one; above, each doubling has fine/2 classes, so that no class is wider than 0.8
// %.
const fine = 256

// class returns the class of a size.
func class(items int) int {
	x := uint(items - 1)
	if x < fine {
		return int(x)
	}
	shift := bits.Len(x) - 8
	return fine + (shift-1)*fine/2 + int(x>>shift) - fine/2
}

// largest returns the largest size of a class.
func largest(class int) int {
	if class < fine {
		return class + 1
	}
	octave, at := (class-fine)/(fine/2), (class-fine)%(fine/2)
	return (at + fine/2 + 1) << (octave + 1)
}
