package ops

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/tensor"
)

var nan, inf = float32(math.NaN()), float32(math.Inf(1))

// fp32, i64 and u8 make named tensors.
func fp32(name string, values []float32, shape ...int64) tensor.Tensor {
	t := float32s(values, shape...)
	t.Name = name
	return t
}

func i64(name string, values ...int64) tensor.Tensor {
	t := int64s(values, int64(len(values)))
	t.Name = name
	return t
}

func u8(name string, values []byte, shape ...int64) tensor.Tensor {
	return tensor.Tensor{Name: name, DType: tensor.Uint8, Shape: shape, Data: values}
}

func mustNew(t testing.TB, name string, with map[string]string) *Function {
	t.Helper()
	f, err := New(name, with)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// answer runs a function and returns its outputs as numbers, by name.
func answer(t testing.TB, f *Function, c Call) map[string][]float64 {
	t.Helper()
	r, err := f.Run(&c)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]float64{}
	for i := range r.Outputs {
		x := &r.Outputs[i]
		if err := x.Validate(); err != nil {
			t.Fatal(err)
		}
		out[x.Name] = numbers(x)
	}
	return out
}

func numbers(x *tensor.Tensor) []float64 {
	out := []float64{}
	for i := range count(x.Shape) {
		switch x.DType {
		case tensor.FP32:
			out = append(out, float64(float(x.Data, i)))
		case tensor.Uint8:
			out = append(out, float64(x.Data[i]))
		default:
			out = append(out, float64(integer(x, i)))
		}
	}
	return out
}

type with = map[string]string

func TestWorkedExamples(t *testing.T) {
	// the second overlaps the first by 81/119
	two := []float32{0, 0, 10, 10, 1, 1, 11, 11, 20, 20, 30, 30, 0, 0, 10, 10}
	for name, c := range map[string]struct {
		function string
		with     with
		in       []tensor.Tensor
		offset   int
		want     map[string][]float64
	}{
		"the largest of each row, ties to the first": {"topk", with{"k": "2"}, []tensor.Tensor{
			fp32("scores", []float32{1, 3, 3, 2, nan, -inf, 0, -1}, 2, 4),
		}, 0,
			map[string][]float64{"values": {3, 3, 0, -1}, "indices": {1, 2, 2, 3}}},
		"few of many": {"topk", with{"k": "1"}, []tensor.Tensor{
			fp32("scores", []float32{5, 1, 9, 4, 2, 3, 9, 7, 0, 8, 9}, 1, 11),
		}, 0,
			map[string][]float64{"values": {9}, "indices": {2}}},
		"the index of the largest": {"argmax", nil, []tensor.Tensor{
			fp32("scores", []float32{1, 2, 2, nan, 5, 4, nan, nan, nan}, 3, 3),
		}, 0,
			map[string][]float64{"indices": {1, 1, 0}, "values": {2, 5, math.NaN()}}},
		"scores that are enough": {"threshold", with{"least": "0.5"}, []tensor.Tensor{
			fp32("scores", []float32{0.5, 0.4, nan, 0.9}, 4), i64("rows", 10, 11, 12, 13),
		}, 7,
			map[string][]float64{"scores": {0.5, float64(float32(0.9))}, "rows": {10, 13}, "index": {7, 10}}},
		"scores of a column": {"threshold", with{"least": "1", "column": "1"},
			[]tensor.Tensor{fp32("scores", []float32{9, 0, 0, 1}, 2, 2)}, 0,
			map[string][]float64{"scores": {0, 1}, "rows": {1}, "index": {1}}},
		"the best score of a row": {"threshold", with{"least": "1"}, []tensor.Tensor{
			fp32("scores", []float32{9, 0, 0, 0}, 2, 2),
		}, 0,
			map[string][]float64{"scores": {9, 0}, "rows": {0}, "index": {0}}},
		"nothing is enough": {"threshold", with{"least": "1"}, []tensor.Tensor{fp32("scores", nil, 0)}, 0,
			map[string][]float64{"scores": {}, "rows": {}, "index": {}}},
		"one of each heap of boxes": {"nms", with{"iou": "0.5", "score": "0.2"}, []tensor.Tensor{
			fp32("boxes", two, 1, 4, 4), fp32("scores", []float32{0.6, 0.9, 0.5, 0.1}, 1, 4),
		}, 3,
			map[string][]float64{
				"boxes": {1, 1, 11, 11, 20, 20, 30, 30}, "scores": {float64(float32(0.9)), 0.5}, "classes": {0, 0},
				"image_index": {3, 3}, "index": {1, 2},
			}},
		"an overlap that is allowed": {"nms", with{"iou": "0.7", "most": "2"}, []tensor.Tensor{
			fp32("boxes", two, 4, 4), fp32("scores", []float32{0.5, 0.5, 0.5, 0.5}, 4),
		}, 0,
			map[string][]float64{
				"boxes": {0, 0, 10, 10, 1, 1, 11, 11}, "scores": {0.5, 0.5}, "classes": {0, 0}, "image_index": {0, 0},
				"index": {0, 1},
			}},
		"boxes of other classes stay": {"nms", nil, []tensor.Tensor{
			fp32("boxes", two[:8], 2, 4), fp32("scores", []float32{1, 0, 0, 2}, 2, 2),
		}, 0,
			map[string][]float64{
				"boxes": {1, 1, 11, 11, 0, 0, 10, 10}, "scores": {2, 1}, "classes": {1, 0}, "image_index": {0, 0},
				"index": {1, 0},
			}},
		"unless told otherwise": {"nms", with{"across_classes": "true"}, []tensor.Tensor{
			fp32("boxes", two[:8], 2, 4), fp32("scores", []float32{1, 0, 0, 2}, 2, 2),
		}, 0,
			map[string][]float64{
				"boxes": {1, 1, 11, 11}, "scores": {2}, "classes": {1}, "image_index": {0}, "index": {1},
			}},
		"boxes that are none": {"nms", with{"score": "-1"}, []tensor.Tensor{
			fp32("boxes", []float32{nan, 0, 1, 1, 5, 5, 1, 1, 0, 0, inf, 1}, 3, 4),
			fp32("scores", []float32{1, nan, 1}, 3),
		}, 0,
			map[string][]float64{"boxes": {}, "scores": {}, "classes": {}, "image_index": {}, "index": {}}},
		"half the size": {"resize", with{"height": "1", "width": "2"}, []tensor.Tensor{
			u8("image", []byte{0, 10, 20, 30, 40, 50, 60, 71}, 1, 2, 4, 1),
		}, 0,
			map[string][]float64{"image": {25, 45}}}, // (0+10+40+50)/4 and 45.25
		"the nearest": {"resize", with{"height": "1", "width": "2", "filter": "nearest"}, []tensor.Tensor{
			u8("image", []byte{0, 10, 20, 30, 40, 50, 60, 71}, 1, 2, 4, 1),
		}, 0,
			map[string][]float64{"image": {50, 71}}},
		"larger, as another type": {"resize", with{"height": "1", "width": "4", "datatype": "FP32", "scale": "0.5",
			"layout": "nchw"}, []tensor.Tensor{u8("image", []byte{0, 100, 8, 8}, 1, 2, 1, 2)}, 0,
			map[string][]float64{"image": {0, 12.5, 37.5, 50, 4, 4, 4, 4}}},
		"cut to what a byte holds": {"resize", with{"height": "1", "width": "3", "datatype": "UINT8"},
			[]tensor.Tensor{fp32("image", []float32{-5, nan, 300}, 1, 1, 3, 1)}, 0,
			map[string][]float64{"image": {0, 0, 255}}},
		"a box of a picture": {"crop", with{"height": "2", "width": "2"}, []tensor.Tensor{
			u8("image", []byte{0, 1, 2, 3, 4, 5, 6, 7, 8}, 1, 3, 3, 1), fp32("boxes", []float32{1, 1, 3, 3}, 1, 4),
		}, 0,
			map[string][]float64{"patches": {4, 5, 7, 8}}},
		"boxes of several pictures": {"crop", with{"height": "1", "width": "1"}, []tensor.Tensor{
			u8("image", []byte{10, 20}, 2, 1, 1, 1), fp32("boxes", []float32{0, 0, 1, 1, -3, -3, 9, 9, 1, 1, 1, 1}, 3,
				4), i64("image_index", 1, 0, 1),
		}, 0,
			map[string][]float64{"patches": {20, 10, 0}}},
		"a picture for each box": {"crop", with{"height": "1", "width": "1", "boxes": "normalized"}, []tensor.Tensor{
			u8("image", []byte{10, 11, 20, 21}, 2, 1, 2, 1), fp32("boxes", []float32{0, 0, 0.5, 1, 0.5, 0, 1, 1}, 2, 4),
		}, 0,
			map[string][]float64{"patches": {10, 21}}},
		"no boxes": {"crop", with{"height": "1", "width": "1"}, []tensor.Tensor{
			u8("image", []byte{10, 11, 20, 21}, 2, 1, 2, 1), fp32("boxes", nil, 0, 4), i64("image_index"),
		}, 0,
			map[string][]float64{"patches": {}}},
		"rows made flat": {
			"reshape", nil, []tensor.Tensor{
				fp32("tensor", []float32{1, 2, 3, 4}, 2, 2, 1),
			}, 0, map[string][]float64{"tensor": {1, 2, 3, 4}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := answer(t, mustNew(t, c.function, c.with), Call{Inputs: c.in, Offset: c.offset})
			if len(got) != len(c.want) {
				t.Errorf("outputs %v, want %v", got, c.want)
			}
			for k, v := range c.want {
				if !slices.EqualFunc(got[k], v, func(a, b float64) bool { return a == b || a != a && b != b }) {
					t.Errorf("%s is %v, want %v", k, got[k], v)
				}
			}
		})
	}
}

func TestReshape(t *testing.T) {
	for _, c := range []struct {
		with with
		from []int64
		want []int64 // nil for an error
	}{
		{nil, []int64{2, 3, 4}, []int64{2, 12}},
		{with{"shape": "4, -1"}, []int64{2, 3, 4}, []int64{2, 4, 3}},
		{with{"shape": "2,6"}, []int64{2, 3, 4}, []int64{2, 2, 6}},
		{with{"shape": "5,-1"}, []int64{2, 3, 4}, nil},
		{with{"shape": "5"}, []int64{2, 3, 4}, nil},
		{with{"shape": "-1,4", "whole": "true"}, []int64{2, 3, 4}, []int64{6, 4}},
		{with{"shape": "1", "whole": "true"}, []int64{}, []int64{1}},
		{nil, []int64{}, nil},
		{nil, []int64{0, 3}, []int64{0, 0}},
		{with{"shape": "0"}, []int64{2, 0, 9}, []int64{2, 0}},
		{with{"shape": "3000000000"}, nil, nil},
	} {
		f, err := New("reshape", c.with)
		if err != nil {
			if c.want != nil || c.from != nil {
				t.Error(err)
			}
			continue
		}
		r, err := f.Run(&Call{
			Inputs: []tensor.Tensor{
				{Name: "tensor", DType: tensor.Uint8, Shape: c.from, Data: make([]byte, count(c.from))},
			},
		})
		if (err == nil) != (c.want != nil) || err == nil && !slices.Equal(r.Outputs[0].Shape, c.want) {
			t.Errorf("%v of %v: %v %v, want %v", c.with, c.from, r.Outputs, err, c.want)
		}
		specs, serr := f.Specs([]tensor.Spec{{Name: "tensor", DType: tensor.Uint8, Shape: c.from}})
		if (serr == nil) != (err == nil) || err == nil && !slices.Equal(specs[0].Shape, c.want) {
			t.Errorf("%v of %v is described as %v %v", c.with, c.from, specs, serr)
		}
	}
}

func TestIdentity(t *testing.T) {
	for _, c := range []struct {
		batch string
		from  []int64
		want  []int64 // nil for an error
	}{
		{"keep", []int64{2, 3}, []int64{2, 3}},
		{"keep", []int64{}, []int64{}},
		{"add", []int64{2, 0}, []int64{1, 2, 0}},
		{"drop", []int64{1, 2, 0}, []int64{2, 0}},
		{"drop", []int64{2, 3}, nil},
		{"drop", []int64{}, nil},
	} {
		f := mustNew(t, "identity", with{"batch": c.batch})
		r, err := f.Run(&Call{
			Inputs: []tensor.Tensor{
				{Name: "tensor", DType: tensor.Uint8, Shape: c.from, Data: make([]byte, count(c.from))},
			},
		})
		if (err == nil) != (c.want != nil) || err == nil && !slices.Equal(r.Outputs[0].Shape, c.want) {
			t.Errorf("%s of %v: %v %v, want %v", c.batch, c.from, r.Outputs, err, c.want)
		}
		specs, serr := f.Specs([]tensor.Spec{{Name: "tensor", DType: tensor.Uint8, Shape: c.from}})
		if (serr == nil) != (err == nil) || err == nil && !slices.Equal(specs[0].Shape, c.want) {
			t.Errorf("%s of %v is described as %v %v", c.batch, c.from, specs, serr)
		}
	}
	open := []tensor.Spec{{Name: "tensor", DType: tensor.Uint8, Shape: []int64{-1, -1, 4}}}
	if got, err := mustNew(t, "identity", with{"batch": "drop"}).Specs(open); err != nil ||
		!slices.Equal(got[0].Shape, []int64{-1, 4}) {
		t.Errorf("%v %v", got, err)
	}
}

func TestWhatIsRefused(t *testing.T) {
	image, boxes := u8("image", make([]byte, 12), 1, 2, 2, 3), fp32("boxes", make([]float32, 8), 2, 4)
	for _, c := range []struct {
		function string
		with     with
		in       []tensor.Tensor
		want     string
	}{
		{"sharpen", nil, nil, `there is no function "sharpen": there is argmax, constant`},
		{
			"nms", with{"iou": "2", "scor": "1", "most": "0"}, nil,
			`scor is no option of nms: it has iou, score, most, across_classes; iou is "2", want a number from 0 to ` +
				`1; most is "0"`,
		},
		{"crop", with{"height": "3"}, nil, "input \"image\" is missing"},
		{"resize", with{"height": "3"}, nil, "height and width belong together"},
		{
			"crop", with{"height": "3", "width": "3", "layout": "chw", "datatype": "FP16"}, nil,
			`layout is "chw", want nhwc or nchw; datatype is "FP16"`,
		},
		{"reshape", with{"shape": "-1,-1"}, nil, "one of them -1 at the most"},
		{"reshape", with{"shape": "3,x"}, nil, `has "x" in it`},
		{"threshold", nil, nil, "least is missing"},
		{"nms", nil, []tensor.Tensor{boxes}, `nms: input "scores" is missing: [n, k]`},
		{
			"nms", nil, []tensor.Tensor{
				boxes, fp32("scores", make([]float32, 3), 3),
			}, "dimension 0 of scores is 3, want 2",
		},
		{"nms", nil, []tensor.Tensor{boxes, fp32("scores", make([]float32, 2), 1, 1, 2)}, "do not go together"},
		{"nms", nil, []tensor.Tensor{boxes, i64("scores", 1, 2)}, `input "scores" is of datatype INT64, want FP32`},
		{
			"nms", nil, []tensor.Tensor{
				fp32("boxes", make([]float32, 6), 2, 3), fp32("scores", make([]float32, 2), 2),
			}, "the last dimension of boxes is 3, want 4",
		},
		{
			"crop", with{"height": "1", "width": "1"}, []tensor.Tensor{u8("image", make([]byte, 4), 2, 2), boxes},
			`input "image" has shape [2 2]: pictures`,
		},
		{
			"crop", with{"height": "1", "width": "1"}, []tensor.Tensor{image, boxes, i64("image_index", 0, 1)},
			"image_index[1] is 1, there are 1 pictures",
		},
		{
			"crop", with{"height": "1", "width": "1"}, []tensor.Tensor{image, boxes, i64("image_index", 0)},
			"the number of rows of image_index is 1, want 2",
		},
		{
			"crop", with{"height": "1", "width": "1"}, []tensor.Tensor{u8("image", make([]byte, 9), 3, 1, 1, 3), boxes},
			"2 boxes and 3 pictures: give image_index",
		},
		{
			"crop", with{"height": "16384", "width": "16384"}, []tensor.Tensor{image, boxes},
			"the output would be too large",
		},
		{
			"resize", with{"height": "1", "width": "1"}, []tensor.Tensor{u8("image", nil, 1, 0, 2, 3)},
			"the picture has no pixels: it is 0 x 2",
		},
		{
			"resize", with{"height": "1", "width": "1"}, []tensor.Tensor{u8("image", nil, 1<<40, 1, 1, 0)},
			"is empty and larger than",
		},
		{"resize", with{"height": "1", "width": "1"}, []tensor.Tensor{u8("image", nil, 1, 1, 1, 3)}, "0 bytes of data"},
		{
			"topk", with{"k": "3"}, []tensor.Tensor{fp32("scores", make([]float32, 2), 1, 2)},
			"the 3 largest of 2 scores do not exist",
		},
		{"argmax", nil, []tensor.Tensor{fp32("scores", nil, 1, 0)}, "nothing to choose from"},
		{
			"threshold", with{"least": "0", "column": "2"}, []tensor.Tensor{fp32("scores", make([]float32, 2), 1, 2)},
			"column 2 of 2 does not exist",
		},
		{
			"threshold", with{"least": "0"}, []tensor.Tensor{
				fp32("scores", make([]float32, 2), 2), i64("rows", 1),
			}, "the number of rows is 1, want 2",
		},
		{"track", nil, []tensor.Tensor{fp32("boxes", make([]float32, 4*2001), 2001, 4)}, "a frame has 2001 boxes"},
	} {
		f, err := New(c.function, c.with)
		if err == nil {
			_, err = f.Run(&Call{Inputs: c.in})
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: %v, want %q", c.function, c.with, err, c.want)
		}
	}
	var errs OptionErrors
	if _, err := New("nms", with{"iou": "x"}); !errors.As(err, &errs) || errs[0].Option != "iou" {
		t.Errorf("%v", err)
	}
}

func TestThresholdKeepsTexts(t *testing.T) {
	words := tensor.Tensor{Name: "rows", DType: tensor.Bytes, Shape: []int64{3, 2}}
	for _, w := range []string{"a", "", "bb", "c", "ddd", "e"} {
		words.Data = tensor.AppendBytes(words.Data, []byte(w))
	}
	r, err := mustNew(t, "threshold", with{"least": "1"}).Run(&Call{
		Inputs: []tensor.Tensor{words, fp32("scores", []float32{1, 0, 2}, 3)},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	_ = tensor.EachBytes(r.Outputs[1].Data, func(e []byte) { got = append(got, string(e)) })
	if want := []string{"a", "", "ddd", "e"}; !slices.Equal(got, want) ||
		!slices.Equal(r.Outputs[1].Shape, []int64{2, 2}) {
		t.Errorf("%q %v, want %q", got, r.Outputs[1].Shape, want)
	}
}

// TestDescriptionsAreTrue compares what a function says its outputs will be with what they are.
func TestDescriptionsAreTrue(t *testing.T) {
	for name, w := range samples {
		f := mustNew(t, name, w)
		for _, items := range []int{1, 3} {
			in := mustSample(t, f, items)
			var specs []tensor.Spec
			for _, x := range in {
				specs = append(specs, tensor.Spec{Name: x.Name, DType: x.DType, Shape: x.Shape})
			}
			out, err := f.Specs(specs)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			before := copies(in)
			r, err := f.Run(&Call{Inputs: in})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if !reflect.DeepEqual(in, before) {
				t.Errorf("%s has changed its inputs", name)
			}
			if len(out) != len(r.Outputs) || len(out) != len(f.Outputs()) {
				t.Fatalf("%s describes %d outputs and gives %d of %d", name, len(out), len(r.Outputs), len(f.Outputs()))
			}
			for i, x := range r.Outputs {
				ok := x.Name == out[i].Name && x.DType == out[i].DType && len(x.Shape) == len(out[i].Shape)
				for d := range x.Shape {
					ok = ok && (out[i].Shape[d] == x.Shape[d] || out[i].Shape[d] == -1)
				}
				if !ok {
					t.Errorf("%s describes %+v and gives %s %s %v", name, out[i], x.Name, x.DType, x.Shape)
				}
			}
			// What is not known must not be refused, nor be described as known.
			for i := range specs {
				specs[i].Shape = nil
			}
			if _, err := f.Specs(specs); err != nil {
				t.Errorf("%s without shapes: %v", name, err)
			}
		}
	}
	for _, name := range Names() {
		if _, ok := samples[name]; !ok {
			t.Errorf("%s is not tested", name)
		}
	}
}

func copies(in []tensor.Tensor) []tensor.Tensor {
	out := slices.Clone(in)
	for i := range out {
		out[i].Data, out[i].Shape = slices.Clone(out[i].Data), slices.Clone(out[i].Shape)
	}
	return out
}
