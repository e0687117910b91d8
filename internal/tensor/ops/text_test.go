package ops

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/tensor"
)

// What repeats is one symbol, unless a blank lies between.
func TestCTCReadsTheBestPath(t *testing.T) {
	const classes = 4 // blank, a, b, and a space
	score := func(path string) (out []float32) {
		for _, c := range path {
			row := make([]float32, classes)
			row[strings.IndexRune("_ab ", c)] = 0.5
			out = append(out, row...)
		}
		return out
	}
	for _, x := range []struct {
		path, want string
		score      float64
	}{
		{"__aa_ab_", "aab", 0.5}, {"________", "", 0}, {"abababab", "abababab", 0.5}, {"aaa  bbb", "a b", 0.5},
	} {
		f := mustNew(t, "ctc", map[string]string{"alphabet": "a\nb\n", "also": " "})
		r, err := f.Run(&Call{Inputs: []tensor.Tensor{fp32("scores", score(x.path), 1, 8, classes)}})
		if err != nil {
			t.Fatal(err)
		}
		if want := tensor.AppendBytes(nil, []byte(x.want)); !slices.Equal(r.Outputs[0].Data, want) ||
			numbers(&r.Outputs[1])[0] != x.score {
			t.Errorf("%s is read as %q with %v, want %q with %v", x.path, r.Outputs[0].Data, numbers(&r.Outputs[1]),
				x.want, x.score)
		}
	}
	last := mustNew(t, "ctc", map[string]string{"alphabet": "_ab", "blank": "last"})
	r, err := last.Run(&Call{Inputs: []tensor.Tensor{fp32("scores", score("_a  b"), 1, 5, classes)}})
	if err != nil || string(r.Outputs[0].Data[4:]) != "_ab" {
		t.Errorf("%q %v", r.Outputs[0].Data, err)
	}
	if _, err := last.Run(&Call{Inputs: []tensor.Tensor{fp32("scores", make([]float32, 5), 1, 1, 5)}}); err == nil ||
		!strings.Contains(err.Error(), "classes is 5, want 4") {
		t.Errorf("another alphabet: %v", err)
	}
}

// Regions of random maps are those that a search over all pairs of pixels joins.
func TestRegionsAgainstPairs(t *testing.T) {
	for seed := range seeds {
		rng := seeded(seed)
		n, h, w := 1+rng.IntN(3), 1+rng.IntN(7), 1+rng.IntN(7)
		values := make([]float32, n*h*w)
		for i := range values {
			values[i] = float32(rng.IntN(11)) / 10
		}
		f := mustNew(t, "regions", map[string]string{
			"least": "0.5", "score": "0.75", "grow": "0", "smallest": "1",
		})
		got := answer(t, f, Call{Offset: 5,
			Inputs: []tensor.Tensor{fp32("scores", values, int64(n), 1, int64(h), int64(w))}})
		var want []string
		for k := range n {
			at := func(i int) float32 { return values[k*h*w+i] }
			group := make([]int, h*w) // the lowest pixel that one is connected with
			for i := range group {
				group[i] = i
			}
			for range h * w {
				for a := range group {
					for b := range group {
						if at(a) >= 0.5 && at(b) >= 0.5 && max(a/w-b/w, b/w-a/w) <= 1 && max(a%w-b%w, b%w-a%w) <= 1 {
							group[a] = min(group[a], group[b])
						}
					}
				}
			}
			type found struct{ x1, y1, x2, y2 int }
			var boxes []found
			for g := range group {
				x, sum, members := found{w, h, 0, 0}, 0.0, 0
				for i := range group {
					if group[i] == g && at(i) >= 0.5 {
						x = found{min(x.x1, i%w), min(x.y1, i/w), max(x.x2, i%w+1), max(x.y2, i/w+1)}
						sum, members = sum+float64(at(i)), members+1
					}
				}
				if members > 0 && float32(sum/float64(members)) >= 0.75 {
					boxes = append(boxes, x)
				}
			}
			slices.SortStableFunc(boxes, func(a, b found) int { return (a.y1-b.y1)*100 + a.x1 - b.x1 })
			for _, b := range boxes {
				want = append(want, fmt.Sprint(k+5, b.x1, b.y1, b.x2, b.y2))
			}
		}
		var have []string
		for m := range got["image_index"] {
			b := got["boxes"][4*m:]
			have = append(have, fmt.Sprint(got["image_index"][m], b[0], b[1], b[2], b[3]))
		}
		slices.Sort(have) // regions that begin at one pixel may change places
		slices.Sort(want)
		if !slices.Equal(have, want) {
			t.Fatalf("seed %d: regions of %v (%d x %d) are %v, want %v", seed, values, h, w, have, want)
		}
	}
}

// Boxes reach beyond their regions, not beyond the map.
func TestRegionsGrow(t *testing.T) {
	values := make([]float32, 8*16)
	for y := 2; y < 6; y++ {
		for x := range 8 {
			values[y*16+x] = 1
		}
	}
	for boxes, want := range map[string][]float64{"pixels": {0, 1, 9, 7}, "normalized": {0, 0.125, 0.5625, 0.875}} {
		f := mustNew(t, "regions", map[string]string{"grow": "0.75", "boxes": boxes}) // 32 pixels by 24: one pixel
		got := answer(t, f, Call{Inputs: []tensor.Tensor{fp32("scores", values, 1, 8, 16)}})
		if !slices.Equal(got["boxes"], want) || got["scores"][0] != 1 {
			t.Errorf("%s: %v", boxes, got)
		}
	}
}

// Without a width, results have that of the widest box at their height, and the others end in zeros.
func TestCropKeepsProportions(t *testing.T) {
	image := u8("image", make([]byte, 10*20), 1, 10, 20, 1)
	for i := range image.Data {
		image.Data[i] = 200
	}
	boxes := fp32("boxes", []float32{0, 0, 10, 10, 0, 0, 20, 5, 3, 3, 3, 9}, 3, 4)
	f := mustNew(t, "crop", map[string]string{"height": "2", "multiple": "3", "mean": "100", "datatype": "FP32"})
	r, err := f.Run(&Call{Inputs: []tensor.Tensor{image, boxes}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int64{3, 2, 9, 1}; !slices.Equal(r.Outputs[0].Shape, want) {
		t.Fatalf("patches are %v, want %v", r.Outputs[0].Shape, want)
	}
	for k, columns := range []int{2, 8, 0} {
		for y := range 2 {
			for x, v := range numbers(&r.Outputs[0])[18*k+9*y:][:9] {
				if (v == 100) != (x < columns) || v != 0 && v != 100 {
					t.Errorf("patch %d, row %d: column %d is %v", k, y, x, v)
				}
			}
		}
	}
}

// Pictures keep their proportions, as far as the multiple lets them, and are not made larger.
func TestResizeToTheLongest(t *testing.T) {
	f := mustNew(t, "resize", map[string]string{"longest": "64", "multiple": "16", "to": "nchw"})
	for from, want := range map[[2]int64][]int64{
		{128, 96}: {1, 3, 64, 48}, {30, 20}: {1, 3, 32, 16}, {1000, 10}: {1, 3, 64, 16}, {3, 3}: {1, 3, 16, 16},
	} {
		in := u8("image", make([]byte, 3*from[0]*from[1]), 1, from[0], from[1], 3)
		r, err := f.Run(&Call{Inputs: []tensor.Tensor{in}})
		if err != nil || !slices.Equal(r.Outputs[0].Shape, want) {
			t.Errorf("%v becomes %v, want %v (%v)", from, r.Outputs[0].Shape, want, err)
		}
	}
	for _, with := range []map[string]string{{}, {"height": "3"}, {"height": "3", "width": "3", "longest": "3"}} {
		if _, err := New("resize", with); err == nil {
			t.Errorf("%v is taken", with)
		}
	}
	one := mustNew(t, "resize", map[string]string{"longest": "64", "scale": "1,2"})
	if _, err := one.Run(&Call{Inputs: []tensor.Tensor{u8("image", make([]byte, 3), 1, 1, 1, 3)}}); err == nil ||
		!strings.Contains(err.Error(), "channels is 3, want 2") {
		t.Errorf("two scales for three channels: %v", err)
	}
}

// A window goes on from call to call, and is the same whether items come together or apart.
func TestWindowsGoOn(t *testing.T) {
	f := mustNew(t, "window", map[string]string{"length": "3"})
	together := answer(t, f, Call{Inputs: []tensor.Tensor{fp32("entries", []float32{1, 2, 3, 4, 5, 6, 7, 8}, 2, 2, 2)}})
	if want := []float64{0, 0, 1, 2, 3, 4, 3, 4, 5, 6, 7, 8}; !slices.Equal(together["window"], want) {
		t.Errorf("windows %v, want %v", together["window"], want)
	}
	if want := []float64{float64(float32(2) / 3), 1}; !slices.Equal(together["full"], want) {
		t.Errorf("full %v, want %v", together["full"], want)
	}
	var state []byte
	for k := range 2 {
		r, err := f.Run(&Call{State: state, Inputs: []tensor.Tensor{
			fp32("entries", []float32{1, 2, 3, 4, 5, 6, 7, 8}[4*k:][:4], 1, 2, 2),
		}})
		if err != nil || !slices.Equal(numbers(&r.Outputs[0]), together["window"][6*k:][:6]) {
			t.Errorf("item %d alone: %v %v", k, numbers(&r.Outputs[0]), err)
		}
		state = r.State
	}
	if _, err := f.Run(&Call{State: state, Inputs: []tensor.Tensor{fp32("entries", []float32{1}, 1, 1)}}); err == nil ||
		!strings.Contains(err.Error(), "start the stream anew") {
		t.Errorf("other entries: %v", err)
	}
	_, err := f.Run(&Call{State: state[:5], Inputs: []tensor.Tensor{fp32("entries", []float32{1}, 1, 1)}})
	if err == nil {
		t.Error("a damaged state is taken")
	}
}

// A constant has one number for all elements or one for each.
func TestConstants(t *testing.T) {
	any := Call{Inputs: []tensor.Tensor{u8("after", []byte{1}, 1)}}
	for _, x := range []struct {
		with map[string]string
		want []float64
	}{
		{with{"values": "16000", "datatype": "INT64"}, []float64{16000}},
		{with{"values": "1, 2,-3", "datatype": "INT32", "shape": "3,1"}, []float64{1, 2, -3}},
		{with{"values": "0.5", "shape": "2"}, []float64{0.5, 0.5}},
	} {
		if got := answer(t, mustNew(t, "constant", x.with), any)["tensor"]; !slices.Equal(got, x.want) {
			t.Errorf("%v gives %v, want %v", x.with, got, x.want)
		}
	}
	for _, wrong := range []map[string]string{
		nil, {"values": "1,2"}, {"values": "256", "datatype": "UINT8"}, {"values": "1", "shape": "99999,99999"},
		{"values": "x"},
	} {
		if _, err := New("constant", wrong); err == nil {
			t.Errorf("%v is taken", wrong)
		}
	}
}

// Each channel has its own mean and scale.
func TestNormalize(t *testing.T) {
	f := mustNew(t, "normalize", map[string]string{"mean": "1, 2", "scale": "0.5,10"})
	got := answer(t, f, Call{Inputs: []tensor.Tensor{u8("tensor", []byte{1, 2, 3, 4}, 2, 2)}})["tensor"]
	if want := []float64{0, 0, 1, 20}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
