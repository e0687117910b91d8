package ops

import (
	"math"
	"strconv"
	"strings"
)

// Options of functions that change values.
var (
	meanOption = Option{
		Name: "mean", Default: "0",
		Doc: "what is subtracted from values first: a number, or one for each channel with commas between",
	}
	scaleOption = Option{
		Name: "scale", Default: "1",
		Doc: "what values are multiplied with: a number, or one for each channel with commas between",
	}
)

// linear changes values: less a mean, times a scale. Each has one number for all channels or one for each.
type linear struct{ mean, scale []float32 }

func newLinear(s *settings) linear { return linear{s.numbers("mean"), s.numbers("scale")} }

// numbers reads finite numbers with commas between.
func (s *settings) numbers(name string) (out []float32) {
	text := s.text(name)
	for part := range strings.SplitSeq(text, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(part), 32)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			s.bad(name, "has %.40q in it, want a number, or some with commas between", part)
			return []float32{0}
		}
		out = append(out, float32(x))
	}
	return out
}

// fits returns an error for another number of channels than there are numbers; -1 is not known.
func (l *linear) fits(channels int64) error {
	for _, x := range [...][]float32{l.mean, l.scale} {
		if len(x) > 1 {
			if err := checkEqual("the number of channels", channels, int64(len(x))); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *linear) of(v float32, channel int) float32 {
	return (v - l.mean[min(channel, len(l.mean)-1)]) * l.scale[min(channel, len(l.scale)-1)]
}
