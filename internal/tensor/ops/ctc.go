package ops

import (
	"strings"
	"unicode/utf8"

	"github.com/sluice-serving/sluice/tensor"
)

// ctcKind reads the best path of connectionist temporal classification (Graves et al., ICML 2006, §3.2).
var ctcKind = kind{
	name: "ctc",
	doc:  "reads texts from the scores of a recogniser: the best class of each step, without repetitions and blanks.",
	inputs: []Port{
		{Name: "scores", DTypes: floats, Ranks: []int{3}, Doc: "[n, steps, classes]"},
	},
	outputs: []Port{
		{Name: "text", Doc: "[n] BYTES in UTF-8"},
		{Name: "score", Doc: "[n] FP32: the mean of the scores of what was read, 0 for an empty text"},
	},
	options: []Option{
		{
			Name: "alphabet", Required: true,
			Doc: "the symbols of the classes without the blank, in their order: one in a line, or else one for each " +
				"character",
		},
		{Name: "also", Doc: "symbols of the classes behind those of the alphabet, one for each character"},
		{Name: "blank", Default: "first", Doc: "`first` or `last`: which class is no symbol"},
	},
	build: func(s *settings) body {
		f := &ctc{last: s.oneOf("blank", "first", "last") == "last"}
		text := s.text("alphabet")
		if trimmed := strings.TrimRight(text, "\r\n"); strings.Contains(trimmed, "\n") {
			for line := range strings.SplitSeq(trimmed, "\n") {
				f.alphabet = append(f.alphabet, strings.TrimSuffix(line, "\r"))
			}
		} else {
			f.alphabet = strings.Split(trimmed, "")
		}
		f.alphabet = append(f.alphabet, strings.Split(s.text("also"), "")...)
		if !utf8.ValidString(text + s.text("also")) {
			s.bad("alphabet", "is no UTF-8")
		}
		return f
	},
}

type ctc struct {
	alphabet []string
	last     bool // the blank is the last class, else the first
}

func (f *ctc) check(shape []int64) error {
	if shape == nil {
		return nil
	}
	return checkEqual("the number of classes", shape[2], int64(len(f.alphabet)+1))
}

func (f *ctc) specs(in []*tensor.Spec) ([]tensor.Spec, error) {
	n := int64(-1)
	if in[0].Shape != nil {
		n = in[0].Shape[0]
	}
	return []tensor.Spec{{DType: tensor.Bytes, Shape: []int64{n}}, {DType: tensor.FP32, Shape: []int64{n}}},
		f.check(in[0].Shape)
}

func (f *ctc) run(in []*tensor.Tensor, _ *Call) ([]tensor.Tensor, []byte, error) {
	shape := in[0].Shape
	if err := f.check(shape); err != nil {
		return nil, nil, err
	}
	n, steps, classes := int(shape[0]), int(shape[1]), int(shape[2])
	texts, scores := tensor.Tensor{DType: tensor.Bytes, Shape: []int64{shape[0]}, Data: []byte{}}, make([]float32, n)
	for k := range n {
		var text []byte
		text, scores[k] = f.read(in[0].Data[4*k*steps*classes:], steps, classes)
		texts.Data = tensor.AppendBytes(texts.Data, text)
	}
	return []tensor.Tensor{texts, float32s(scores, shape[0])}, nil, nil
}

// read reads one text.
func (f *ctc) read(data []byte, steps, classes int) (text []byte, score float32) {
	blank, shift := 0, 1
	if f.last {
		blank, shift = classes-1, 0
	}
	sum, n, before := 0.0, 0, blank
	for t := range steps {
		best, top := blank, float(data, t*classes+blank)
		for c := range classes {
			if v := float(data, t*classes+c); v > top {
				best, top = c, v
			}
		}
		if best != before && best != blank {
			text = append(text, f.alphabet[best-shift]...)
			sum, n = sum+float64(top), n+1
		}
		before = best
	}
	if n == 0 {
		return text, 0
	}
	return text, float32(sum / float64(n))
}
