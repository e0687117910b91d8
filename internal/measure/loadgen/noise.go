package loadgen

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/tensor"
)

// syntheticData draws input data: 0 or 1 for integers, numbers in [0, 1) for floats, empty strings.
type syntheticData struct{ r *rand.Rand }

func newSyntheticData(seed uint64) *syntheticData {
	return &syntheticData{r: workload.Rand(seed, "synthetic")}
}

func (n *syntheticData) fill(d tensor.DType, count int) []byte {
	var b []byte
	for range count {
		switch d {
		case tensor.Bytes:
			b = tensor.AppendBytes(b, nil)
		case tensor.Bool:
			b = append(b, byte(n.r.IntN(2)))
		case tensor.FP32:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(n.r.Float32()))
		case tensor.FP64:
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(n.r.Float64()))
		case tensor.BF16: // the upper half of an FP32
			b = binary.LittleEndian.AppendUint16(b, uint16(math.Float32bits(n.r.Float32())>>16))
		case tensor.FP16: // exponent 14 of bias 15: a number in [0.5, 1)
			b = binary.LittleEndian.AppendUint16(b, uint16(14<<10|n.r.IntN(1<<10)))
		default:
			v := byte(n.r.IntN(2))
			for i := range d.Size() {
				if i > 0 {
					v = 0
				}
				b = append(b, v)
			}
		}
	}
	return b
}
