package digits

import (
	"encoding/binary"
	"fmt"
	"math"
)

// A file of weights has, layer after layer and output after output, the scale, the bias and the weights of an output:
// two numbers of four bytes, little-endian, and a byte for each weight, which is the scale times the byte.

// steps is the largest byte of a weight.
const steps = math.MaxInt8

// scaleOf returns the scale of the weights of an output.
func scaleOf(weights []float32) (scale float32) {
	for _, w := range weights {
		scale = max(scale, w, -w)
	}
	return scale / steps
}

// level is the byte that is nearest to a weight.
func level(w, scale float32) int8 {
	if scale == 0 {
		return 0
	}
	return int8(math.RoundToEven(float64(w) / float64(scale)))
}

// encode writes the file of weights.
func encode(all []Linear) (out []byte) {
	for _, l := range all {
		inputs := len(l.Weights) / len(l.Bias)
		for o, bias := range l.Bias {
			row := l.Weights[o*inputs : (o+1)*inputs]
			scale := scaleOf(row)
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(scale))
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(bias))
			for _, w := range row {
				out = append(out, byte(level(w, scale)))
			}
		}
	}
	return out
}

// decode reads a file of weights into the network.
func (n *Network) decode(data []byte) error {
	shapes, err := n.shapes()
	if err != nil {
		return err
	}
	want := 0
	for _, s := range shapes {
		want += s.outputs * (8 + s.inputs)
	}
	if len(data) != want {
		return fmt.Errorf("%d bytes of weights, want %d", len(data), want)
	}
	n.data, n.linear = data, nil
	for _, s := range shapes {
		var l Linear
		for range s.outputs {
			scale := math.Float32frombits(binary.LittleEndian.Uint32(data))
			l.Bias = append(l.Bias, math.Float32frombits(binary.LittleEndian.Uint32(data[4:])))
			for _, b := range data[8 : 8+s.inputs] {
				l.Weights = append(l.Weights, scale*float32(int8(b)))
			}
			data = data[8+s.inputs:]
		}
		n.linear = append(n.linear, l)
	}
	return nil
}
