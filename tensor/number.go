package tensor

import (
	"encoding/binary"
	"math"
)

// Number decodes the first element of b, which has at least Size bytes, as a number. It is 0 for Bytes and Invalid, and
// rounded where an integer has more than 53 bits.
func (d DType) Number(b []byte) float64 {
	switch d {
	case FP32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case FP64:
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	case BF16:
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
	case FP16:
		return half(binary.LittleEndian.Uint16(b))
	}
	var whole [8]byte
	copy(whole[:], b[:d.Size()])
	bits := binary.LittleEndian.Uint64(whole[:])
	switch d {
	case Int8, Int16, Int32, Int64:
		unused := 64 - 8*d.Size()
		return float64(int64(bits<<unused) >> unused)
	}
	return float64(bits)
}

// half is an IEEE 754 number of 16 bits.
func half(bits uint16) float64 {
	sign := 1 - 2*float64(bits>>15)
	exponent, fraction := int(bits>>10&31), float64(bits&1023)
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 31:
		if fraction != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}
