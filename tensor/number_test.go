package tensor

import (
	"encoding/binary"
	"math"
	"testing"
)

func TestHalfPrecisionNumbers(t *testing.T) {
	for bits, want := range map[uint16]float64{
		0: 0, 0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 1: 0x1p-24, 0x0400: 0x1p-14,
		0x7c00: math.Inf(1), 0xfc00: math.Inf(-1),
	} {
		if got := FP16.Number(binary.LittleEndian.AppendUint16(nil, bits)); got != want {
			t.Errorf("%04x is %v, want %v", bits, got, want)
		}
	}
}

// Every type reads its own bytes, and no further.
func TestNumbers(t *testing.T) {
	b := []byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}
	for d, want := range map[DType]float64{
		Int8: -2, Int16: -2, Int32: -2, Int64: -2, Uint8: 254, Uint16: 65534, Uint32: 1<<32 - 2, Uint64: 1 << 64,
		Bytes: 0, Invalid: 0,
	} {
		if got := d.Number(b); got != want {
			t.Errorf("%v: %v, want %v", d, got, want)
		}
	}
	if got := FP32.Number(binary.LittleEndian.AppendUint32(nil, math.Float32bits(1.5))); got != 1.5 {
		t.Errorf("FP32: %v", got)
	}
	if got := FP64.Number(binary.LittleEndian.AppendUint64(nil, math.Float64bits(0.1))); got != 0.1 {
		t.Errorf("FP64: %v", got)
	}
	if got := BF16.Number([]byte{0xc0, 0x3f}); got != 1.5 {
		t.Errorf("BF16: %v", got)
	}
}
