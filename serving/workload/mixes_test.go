package workload

import (
	"math"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-serving/sluice/serving"
)

const mixture = `
distribution: mixture
weights: [8, 22, 5, 64]
parts:
  - {distribution: uniform, min: 1, max: 99}
  - {distribution: uniform, min: 200, max: 599}
  - {distribution: gaussian, mean: 400, deviation: 150, min: 1, max: 999}
  - distribution: mixture
    weights: [3, 1]
    parts: [{distribution: lognormal, mu: 5.1, sigma: 0.2, max: 999}, {value: 195}]
round_up_to: 10
`

func mixtureSpec(t *testing.T) (s ItemsSpec) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(mixture), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// Drawn sizes follow the mix that the distribution returns.
func TestMixIsWhatIsDrawn(t *testing.T) {
	log, err := NewLognormal(2, 0.8, 30)
	if err != nil {
		t.Fatal(err)
	}
	sharp, err := NewLognormal(2, 0, 30)
	if err != nil {
		t.Fatal(err)
	}
	hist, err := NewHistogram([]int32{9, 4, 100, 7, 4}, []float64{5, 3, 0.5, 0, 1})
	if err != nil {
		t.Fatal(err)
	}
	gauss, err := NewGaussian(10, 6, 1, 25)
	if err != nil {
		t.Fatal(err)
	}
	tail, err := NewGaussian(-20, 10, 1, 25)
	if err != nil {
		t.Fatal(err)
	}
	mixed, err := mixtureSpec(t).Build()
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]Sizes{
		"constant": ConstantSize(3), "uniform": UniformSize{2, 9}, "lognormal": log, "one logarithm": sharp,
		"histogram": hist, "gaussian": gauss, "tail": tail, "mixture": mixed,
	} {
		mix := s.Mix()
		if err := mix.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := mix.Mean(); math.Abs(got-s.Mean()) > 1e-9*s.Mean() {
			t.Errorf("%s: mean of the mix %v, of the distribution %v", name, got, s.Mean())
		}
		const n = 200_000
		r := Rand(2, name)
		count := map[int32]float64{}
		for range n {
			count[s.Draw(r)]++
		}
		chi, free := 0.0, -1.0
		for c := range mix.Classes() {
			items, share := mix.Class(c)
			got, want := count[int32(items)], share*n
			delete(count, int32(items))
			if want >= 5 {
				chi, free = chi+(got-want)*(got-want)/want, free+1
			}
		}
		if len(count) > 0 {
			t.Errorf("%s: drew sizes that are not in the mix: %v", name, count)
		}
		// Chi-square is within 4 standard deviations of its degrees of freedom.
		if free > 0 && chi > free+4*math.Sqrt(2*free)+8 {
			t.Errorf("%s: chi-square %.1f with %v degrees of freedom", name, chi, free)
		}
	}
	if one, err := FromMix(serving.Mix{}); err != nil || one.Mean() != 1 {
		t.Errorf("a mix of single items: %v, %v", one, err)
	}
}

// A normal distribution truncated on both sides has a mean in closed form. Rounding to whole numbers moves it by less
// than 1/2.
func TestGaussianMean(t *testing.T) {
	for _, c := range []struct {
		mean, deviation, least, most float64
	}{{300, 100, 1, 1000}, {100, 100, 1, 1000}, {-50, 40, 1, 90}, {990, 200, 1, 1000}} {
		g, err := NewGaussian(c.mean, c.deviation, int32(c.least), int32(c.most))
		if err != nil {
			t.Fatal(err)
		}
		a, b := (c.least-0.5-c.mean)/c.deviation, (c.most+0.5-c.mean)/c.deviation
		density := func(x float64) float64 { return math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) }
		below := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
		want := c.mean + c.deviation*(density(a)-density(b))/(below(b)-below(a))
		if math.Abs(g.Mean()-want) > 0.01 {
			t.Errorf("%+v: mean %v, want %v", c, g.Mean(), want)
		}
	}
}

func TestRoundUp(t *testing.T) {
	got := RoundUp(serving.Mix{
		Sizes: []int32{1, 10, 11, 20, 95}, Shares: []float64{0.1, 0.2, 0.3, 0.25, 0.15}, Count: 7,
	}, 10)
	want := map[int]float64{10: 0.3, 20: 0.55, 100: 0.15}
	if got.Classes() != len(want) || got.Count != 7 {
		t.Fatalf("got %+v", got)
	}
	for c := range got.Classes() {
		if items, share := got.Class(c); math.Abs(share-want[items]) > 1e-12 {
			t.Errorf("%d items: share %v, want %v", items, share, want[items])
		}
	}
	sizes, err := mixtureSpec(t).Build()
	if err != nil {
		t.Fatal(err)
	}
	mix := sizes.Mix()
	for _, size := range mix.Sizes {
		if size%10 != 0 {
			t.Errorf("size %d is not rounded up", size)
		}
	}
}

func TestMixtureErrorsNameTheField(t *testing.T) {
	for want, change := range map[string]func(*ItemsSpec){
		"parts[1].min and max":         func(s *ItemsSpec) { s.Parts[1].Max = 3 },
		"parts[2].deviation":           func(s *ItemsSpec) { s.Parts[2].Deviation = 0 },
		"parts[2].mean":                func(s *ItemsSpec) { s.Parts[2].Mean = math.NaN() },
		"parts[2].min and max: practi": func(s *ItemsSpec) { s.Parts[2].Mean = 1e5 },
		"parts[3].parts[0].distribu":   func(s *ItemsSpec) { s.Parts[3].Parts[0].Distribution = "x" },
		"parts: 4 parts with 3":        func(s *ItemsSpec) { s.Weights = s.Weights[1:] },
		"parts: [0]: weight":           func(s *ItemsSpec) { s.Weights[0] = -1 },
		"parts: weights add up":        func(s *ItemsSpec) { s.Weights = make([]float64, 4) },
		"round_up_to: is -1":           func(s *ItemsSpec) { s.RoundUpTo = -1 },
		"round_up_to: [0]: items":      func(s *ItemsSpec) { *s = ItemsSpec{Value: MaxItems, RoundUpTo: 1000} },
	} {
		s := mixtureSpec(t)
		change(&s)
		if _, err := s.Build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one with %q", err, want)
		}
	}
}
