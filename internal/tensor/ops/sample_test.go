package ops

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/tensor"
)

// samples are options with which every function runs on its samples.
var samples = map[string]map[string]string{
	"argmax": nil, "crop": {"height": "28", "width": "20"}, "identity": nil, "nms": nil, "reshape": nil, "resize": {
		"height": "28", "width": "20", "layout": "nchw",
	},
	"threshold": {"least": "0.5"}, "topk": {"k": "5"}, "track": nil,
	"constant": {"values": "1", "shape": "1,2"}, "ctc": {"alphabet": strings.Repeat("ab", 31) + "c"},
	"normalize": {"scale": "2"}, "regions": nil,
	"window": {"length": "7"},
}

// mustSample makes inputs where nothing is known but the types.
func mustSample(t testing.TB, f *Function, items int) []tensor.Tensor {
	t.Helper()
	var specs []tensor.Spec
	for _, p := range f.Inputs() {
		s := tensor.Spec{Name: p.Name, DType: tensor.FP32}
		if len(p.DTypes) > 0 {
			s.DType = p.DTypes[0]
		}
		specs = append(specs, s)
	}
	in, err := f.Sample(rand.New(rand.NewPCG(1, 2)), specs, items)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestSamplesFillInWhatIsOpen(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		function string
		specs    []tensor.Spec
		want     string
	}{
		{
			"crop", []tensor.Spec{
				{Name: "image", DType: tensor.Uint8, Shape: []int64{-1, 64, -1, -1}}, {
					Name: "boxes", DType: tensor.FP32, Shape: []int64{-1, 4},
				},
			}, "[1 64 256 3] [7 4]",
		},
		{"resize", []tensor.Spec{{Name: "image", DType: tensor.FP32, Shape: []int64{-1, -1, 32, 32}}}, "[7 3 32 32]"},
		{
			"nms", []tensor.Spec{
				{Name: "boxes", DType: tensor.FP32, Shape: []int64{-1, 9, 4}}, {
					Name: "scores", DType: tensor.FP32, Shape: []int64{-1, 9, 3},
				},
			}, "[7 9 4] [7 9 3]",
		},
		{
			"nms", []tensor.Spec{
				{Name: "boxes", DType: tensor.FP32, Shape: []int64{-1, 4}}, {
					Name: "scores", DType: tensor.FP32, Shape: []int64{-1, 3},
				},
			}, "[64 4] [64 3]",
		},
		{
			"threshold", []tensor.Spec{
				{Name: "scores", DType: tensor.FP32, Shape: []int64{-1, -1}}, {
					Name: "rows", DType: tensor.Bytes, Shape: []int64{-1, 2},
				},
			}, "[7 64] [7 2]",
		},
		{"track", []tensor.Spec{{Name: "boxes", DType: tensor.FP32, Shape: []int64{-1, 4}}}, "[64 4]"},
	} {
		f := mustNew(t, c.function, samples[c.function])
		in, err := f.Sample(rng, c.specs, 7)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, x := range in {
			if err := x.Validate(); err != nil {
				t.Error(err)
			}
			got += fmt.Sprint(x.Shape) + " "
		}
		if got != c.want+" " {
			t.Errorf("%s: %swant %s", c.function, got, c.want)
		}
		if _, err := f.Run(&Call{Inputs: in}); err != nil {
			t.Error(err)
		}
	}
	if _, err := mustNew(t, "nms", nil).Sample(rng, nil, 1); err == nil {
		t.Error("a sample of nothing")
	}
}

func BenchmarkFunctions(b *testing.B) {
	for _, name := range Names() {
		f := mustNew(b, name, samples[name])
		in := mustSample(b, f, 1)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := f.Run(&Call{Inputs: in}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
