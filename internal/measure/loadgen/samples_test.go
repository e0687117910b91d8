package loadgen

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/tensor"
)

func write(t *testing.T, dir string, files map[string][]byte) string {
	t.Helper()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func labels(v ...int64) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	return b
}

const goodSamples = `{"inputs":[{"name":"image","datatype":"UINT8","shape":[2],"file":"inputs.bin"},
{"name":"text","datatype":"BYTES","shape":[1],"file":"text.bin"}],
"label_output":"label","labels":{"datatype":"INT64","file":"labels.bin"},"count":3}`

func texts(s ...string) []byte {
	var b []byte
	for _, x := range s {
		b = tensor.AppendBytes(b, []byte(x))
	}
	return b
}

func TestLoadSamples(t *testing.T) {
	s, err := LoadSamples(write(t, t.TempDir(), map[string][]byte{
		"samples.json": []byte(goodSamples), "inputs.bin": {1, 2, 3, 4, 5, 6}, "text.bin": texts("a", "", "ccc"),
		"labels.bin": labels(7, 8, 9),
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []struct{ first, items int }{{0, 1}, {1, 2}, {2, 3}, {0, 7}} {
		in := s.Tensors(q.first, q.items)
		for i := range in {
			if err := in[i].Validate(); err != nil {
				t.Errorf("%+v: %v", q, err)
			}
			if in[i].Shape[0] != int64(q.items) {
				t.Errorf("%+v: shape %v", q, in[i].Shape)
			}
		}
	}
	in := s.Tensors(2, 2)
	if string(in[0].Data) != string([]byte{5, 6, 1, 2}) || string(in[1].Data) != string(texts("ccc", "a")) {
		t.Errorf("samples 2 and 0 are %v", in)
	}
	right := func(d tensor.DType, data []byte, first, items int) string {
		j := s.Right([]tensor.Tensor{{Name: "other"}, {Name: "label", DType: d, Data: data}}, first, items)
		switch {
		case j.Items == 0:
			return "unknown"
		case j.Whole != (j.Right == j.Items) || j.Items != items:
			return fmt.Sprint(j)
		case j.Whole:
			return "right"
		}
		return fmt.Sprintf("wrong, %d right", j.Right)
	}
	var scores []byte
	for i := range 20 {
		x := float32(0)
		if i == 7 || i == 18 { // classes 7 and 8 of ten
			x = 3
		}
		scores = binary.LittleEndian.AppendUint32(scores, math.Float32bits(x))
	}
	for _, c := range []struct {
		got, want string
	}{
		{right(tensor.Int64, labels(8, 9), 1, 2), "right"},
		{right(tensor.Int64, labels(8, 8), 1, 2), "wrong, 1 right"},
		{right(tensor.Uint8, []byte{9, 7}, 2, 2), "right"},
		{right(tensor.FP32, scores, 0, 2), "right"},
		{right(tensor.FP32, scores, 1, 2), "wrong, 0 right"},
		{right(tensor.FP32, scores[:8], 0, 3), "unknown"},
		{right(tensor.Int64, nil, 0, 1), "unknown"},
		{right(tensor.FP16, []byte{0, 0}, 0, 1), "unknown"},
		{right(tensor.Bytes, []byte{0, 0, 0, 0}, 0, 1), "unknown"},
	} {
		if c.got != c.want {
			t.Errorf("judged %s, want %s", c.got, c.want)
		}
	}
	if j := s.Right(nil, 0, 1); j != (Judgement{}) {
		t.Error("no output was judged")
	}
}

func TestLoadSamplesErrors(t *testing.T) {
	good := map[string][]byte{
		"inputs.bin": {1, 2, 3, 4, 5, 6}, "text.bin": texts("a", "", "ccc"), "labels.bin": labels(7, 8, 9),
	}
	replace := func(old, new string) string { return strings.Replace(goodSamples, old, new, 1) }
	for want, text := range map[string]string{
		"samples.json: unexpected": "",
		"count":                    replace(`"count":3`, `"count":0`),
		"6 bytes of data":          replace(`"count":3`, `"count":2`),
		"inputs is empty":          `{"count":1}`,
		`"BOGUS"`:                  replace("UINT8", "BOGUS"),
		"escapes":                  replace("inputs.bin", "../x"),
		"no such file":             replace("inputs.bin", "nothing.bin"),
		"label_output":             replace(`"label_output":"label"`, `"label_output":""`),
		"labels.datatype":          replace("INT64", "INT32"),
		"no elements":              replace(`"shape":[2]`, `"shape":[0]`),
		"total element count":      replace(`"shape":[2]`, `"shape":[4294967296,4294967296]`),
		"negative":                 replace(`"shape":[2]`, `"shape":[-1]`),
		"3 elements of data":       replace(`"shape":[1]`, `"shape":[2]`),
	} {
		dir := write(t, t.TempDir(), good)
		write(t, dir, map[string][]byte{"samples.json": []byte(text)})
		if _, err := LoadSamples(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	if _, err := LoadSamples(filepath.Join(t.TempDir(), "nowhere")); err == nil {
		t.Error("a missing directory was accepted")
	}
}

func TestSynthetic(t *testing.T) {
	var specs []tensor.Spec
	for d := tensor.Bool; d <= tensor.Bytes; d++ {
		specs = append(specs, tensor.Spec{Name: d.String(), DType: d, Shape: []int64{-1, 3, -1}})
	}
	a, err := Synthetic(specs, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := Synthetic(specs, 4, 1)
	for i, x := range a.Tensors(1, 2) {
		if err := x.Validate(); err != nil {
			t.Error(err)
		}
		if string(x.Data) != string(b.Tensors(1, 2)[i].Data) {
			t.Errorf("%s differs with the same seed", x.Name)
		}
	}
	if _, err := Synthetic(nil, 1, 1); err == nil {
		t.Error("a model without inputs was accepted")
	}
	if _, err := Synthetic([]tensor.Spec{
		{Name: "x", DType: tensor.FP32, Shape: []int64{-1, 1 << 40}},
	}, 1, 1); err == nil {
		t.Error("a huge input was accepted")
	}
}
