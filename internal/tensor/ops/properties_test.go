package ops

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/tensor"
)

const seeds = 200

func seeded(seed int) *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), 0x6f7073)) }

// TestNMSAgainstBruteForce holds the definition beside the code: box i is kept exactly when no kept box that comes
// before it, by score and then by place, overlaps it by more than the bound.
func TestNMSAgainstBruteForce(t *testing.T) {
	for seed := range seeds {
		rng := seeded(seed)
		k, classes := 1+rng.IntN(20), 1+rng.IntN(3)
		var boxes, scores []float32
		for range k {
			x, y := float32(rng.IntN(8)), float32(rng.IntN(8))
			boxes = append(boxes, x, y, x+float32(rng.IntN(6)), y+float32(rng.IntN(6)))
			for range classes {
				scores = append(scores, float32(rng.IntN(6))/5) // ties abound
			}
		}
		bound, least := float64(rng.IntN(5))/5, 0.3
		got := answer(t, &Function{&nmsKind, &nms{bound, float32(least), maxKept, false}}, Call{
			Inputs: []tensor.Tensor{
				fp32("boxes", boxes, 1, int64(k), 4), fp32("scores", scores, 1, int64(k), int64(classes)),
			},
		})
		class := func(i int) int {
			row := scores[i*classes : (i+1)*classes]
			return slices.Index(row, slices.Max(row))
		}
		score := func(i int) float32 { return scores[i*classes+class(i)] }
		var order []int
		for i := range k {
			if score(i) >= float32(least) {
				order = append(order, i)
			}
		}
		slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(score(j), score(i)) })
		iou := func(i, j int) float64 {
			a, b := boxes[4*i:4*i+4], boxes[4*j:4*j+4]
			inside := func(box []float32, x, y float32) bool {
				return box[0] <= x && x < box[2] && box[1] <= y && y < box[3]
			}
			both, either := 0, 0
			for x := range 16 { // boxes have whole corners: count the pixels
				for y := range 16 {
					p, q := inside(a, float32(x), float32(y)), inside(b, float32(x), float32(y))
					if p && q {
						both++
					}
					if p || q {
						either++
					}
				}
			}
			if both == 0 {
				return 0
			}
			return float64(both) / float64(either)
		}
		want := []float64{}
		for _, i := range order {
			if !slices.ContainsFunc(want, func(j float64) bool {
				return class(int(j)) == class(i) && iou(int(j), i) > bound
			}) {
				want = append(want, float64(i))
			}
		}
		if !slices.Equal(got["index"], want) {
			t.Fatalf("seed %d: kept %v, want %v", seed, got["index"], want)
		}
	}
}

// TestSamplingAgainstTheFormula resizes and crops with the formula of bilinear interpolation in float64, one value at a
// time.
func TestSamplingAgainstTheFormula(t *testing.T) {
	for seed := range seeds {
		rng := seeded(seed)
		h, w, c, oh, ow := 1+rng.IntN(9), 1+rng.IntN(9), 1+rng.IntN(3), 1+rng.IntN(12), 1+rng.IntN(12)
		nearest, nchw, to := rng.IntN(2) == 0, rng.IntN(2) == 0, rng.IntN(2) == 0
		s := sampling{size: size{oh, ow}, nearest: nearest, nchw: nchw, to: to, datatype: tensor.FP32,
			values: linear{[]float32{3}, []float32{1, 0.5, 2}[:c]}}
		image := u8("image", make([]byte, h*w*c), 1, int64(h), int64(w), int64(c))
		if nchw {
			image.Shape = []int64{1, int64(c), int64(h), int64(w)}
		}
		for i := range image.Data {
			image.Data[i] = byte(rng.UintN(256))
		}
		pixel := func(y, x, ch int) float64 {
			y, x = min(max(y, 0), h-1), min(max(x, 0), w-1) // the border goes on
			if nchw {
				return float64(image.Data[(ch*h+y)*w+x])
			}
			return float64(image.Data[(y*w+x)*c+ch])
		}
		// now and then beyond the picture
		x1, y1 := (1.4*rng.Float64()-0.3)*float64(w), (1.4*rng.Float64()-0.3)*float64(h)
		b := box{x1, y1, x1 + 0.1 + rng.Float64()*float64(w), y1 + 0.1 + rng.Float64()*float64(h)}
		for i := range b {
			b[i] = float64(float32(b[i]))
		}
		whole := box{0, 0, float64(w), float64(h)}
		got := map[box][]float64{
			whole: answer(t, &Function{&resizeKind, &resize{sampling: s}},
				Call{Inputs: []tensor.Tensor{image}})["image"],
			b: answer(t, &Function{&cropKind, &crop{sampling: s}}, Call{Inputs: []tensor.Tensor{image,
				fp32("boxes", []float32{
					float32(b[0]), float32(b[1]), float32(b[2]), float32(b[3]),
				}, 1, 4)}})["patches"],
		}
		for of, values := range got {
			for y := range oh {
				for x := range ow {
					for ch := range c {
						at := (y*ow+x)*c + ch
						if to {
							at = (ch*oh+y)*ow + x
						}
						fy := of[1] + (float64(y)+0.5)*(of[3]-of[1])/float64(oh)
						fx := of[0] + (float64(x)+0.5)*(of[2]-of[0])/float64(ow)
						var want float64
						if nearest {
							want = pixel(int(math.Floor(fy)), int(math.Floor(fx)), ch)
						} else {
							fy, fx = fy-0.5, fx-0.5
							y0, x0 := math.Floor(fy), math.Floor(fx)
							for _, dy := range []float64{0, 1} {
								for _, dx := range []float64{0, 1} {
									want += (1 - math.Abs(fy-y0-dy)) * (1 - math.Abs(fx-x0-dx)) * pixel(int(y0+dy),
										int(x0+dx), ch)
								}
							}
						}
						want = (want - 3) * float64(s.values.scale[ch])
						// Positions are rounded to float32 once: 255 grey levels times a few units in the last place.
						if math.Abs(values[at]-want) > 1e-3 {
							t.Fatalf("seed %d: box %v of %d x %d to %d x %d, (%d, %d, %d) is %v, want %v", seed, of, h,
								w, oh, ow, y, x, ch, values[at], want)
						}
					}
				}
			}
		}
	}
}

// TestSameSizeIsTheSamePicture: pixels then lie where they lay, and nothing is interpolated.
func TestSameSizeIsTheSamePicture(t *testing.T) {
	rng := seeded(1)
	image := u8("image", make([]byte, 7*5*3), 1, 7, 5, 3)
	for i := range image.Data {
		image.Data[i] = byte(rng.UintN(256))
	}
	for _, filter := range []string{"bilinear", "nearest"} {
		r, err := mustNew(t, "resize", with{
			"height": "7", "width": "5", "filter": filter,
		}).Run(&Call{Inputs: []tensor.Tensor{image}})
		if err != nil || !slices.Equal(r.Outputs[0].Data, image.Data) {
			t.Errorf("%s: %v", filter, err)
		}
	}
}

func TestTopKAgainstSorting(t *testing.T) {
	for seed := range seeds {
		rng := seeded(seed)
		n := 1 + rng.IntN(40)
		k := 1 + rng.IntN(n)
		values := make([]float32, n)
		for i := range values {
			if values[i] = float32(rng.IntN(9)); values[i] == 8 {
				values[i] = nan
			}
		}
		got := answer(t, &Function{&topkKind, &topk{k}}, Call{
			Inputs: []tensor.Tensor{fp32("scores", values, 1, int64(n))},
		})["indices"]
		order := make([]float64, n)
		for i := range order {
			order[i] = float64(i)
		}
		// orders NaN below all
		slices.SortStableFunc(order, func(i, j float64) int { return cmp.Compare(values[int(j)], values[int(i)]) })
		if !slices.Equal(got, order[:k]) {
			t.Fatalf("seed %d: %v of %v, want %v", seed, got, values, order[:k])
		}
		if one := answer(t, mustNew(t, "argmax", nil), Call{
			Inputs: []tensor.Tensor{fp32("scores", values, 1, int64(n))},
		})["indices"]; one[0] != order[0] {
			t.Fatalf("seed %d: argmax %v, want %v", seed, one, order[0])
		}
	}
}
