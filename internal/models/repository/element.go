package repository

import (
	"encoding/binary"
	"math"
)

func int32Element(v int32) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(v)) }

func fp32Element(v float32) []byte { return binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)) }

func boolElement(v bool) []byte {
	if v {
		return []byte{1}
	}
	return []byte{0}
}
