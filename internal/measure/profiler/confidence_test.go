package profiler

import (
	"math"
	"math/rand/v2"
	"testing"
)

// drawn is answers to so many samples: confidence is uniform, the small variant is right as often as it is sure, and
// the large one in the mean of that and 1.
func drawn(rng *rand.Rand, n int) (sure []float32, right map[string][]float64) {
	right = map[string][]float64{"small": make([]float64, n), "large": make([]float64, n)}
	for k := range n {
		c := rng.Float64()
		sure = append(sure, float32(c))
		if rng.Float64() < c {
			right["small"][k] = 1
		}
		if rng.Float64() < (1+c)/2 {
			right["large"][k] = 1
		}
	}
	return sure, right
}

// What 4,000 samples say of every threshold holds for others: the share of the queries below it to a point, and the
// accuracy of a cascade to 1.5 points (three standard errors of both samples are 2).
func TestCalibrationHolds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	sure, right := drawn(rng, 4000)
	c, ok := Calibrate("small", "", "margin", sure, right)
	if !ok {
		t.Fatal("not calibrated")
	}
	if err := validConfidences([]Confidence{c}); err != nil {
		t.Fatal(err)
	}
	other, answers := drawn(rng, 20_000)
	for b := 1; b < len(c.Bins); b++ {
		share, accuracy := 0.0, 0.0
		for k, bin := range c.Bins {
			if k < b {
				share, accuracy = share+bin.Share, accuracy+bin.Share*bin.Others["large"]
			} else {
				accuracy += bin.Share * bin.Accuracy
			}
		}
		below, correct := 0.0, 0.0
		for k := range other {
			if float64(other[k]) < c.Bins[b].From {
				below, correct = below+1, correct+answers["large"][k]
			} else {
				correct += answers["small"][k]
			}
		}
		n := float64(len(other))
		if math.Abs(below/n-share) > 0.015 || math.Abs(correct/n-accuracy) > 0.015 {
			t.Errorf("below %.3f: share %.3f, accuracy %.3f, of others %.3f and %.3f", c.Bins[b].From, share, accuracy,
				below/n, correct/n)
		}
	}
}

// The most accurate variant has nobody to ask; few samples, and confidences that are all the same, say nothing.
func TestNoCalibration(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	sure, right := drawn(rng, 4000)
	if _, ok := Calibrate("large", "", "margin", sure, right); ok {
		t.Error("the most accurate variant is calibrated")
	}
	few, some := drawn(rng, 150)
	if _, ok := Calibrate("small", "", "margin", few, some); ok {
		t.Error("150 samples are enough")
	}
	if _, ok := Calibrate("small", "", "margin", make([]float32, 4000), right); ok {
		t.Error("equal confidences tell answers apart")
	}
}

// Profiles with confidences that cannot be are refused with the field's name.
func TestConfidencesThatCannotBe(t *testing.T) {
	good := Confidence{Variant: "v", By: "margin", Samples: 10, Bins: []ConfidenceBin{
		{From: 0, Share: 0.5, Accuracy: 0.5}, {From: 0.5, Share: 0.5, Accuracy: 0.9},
	}}
	if err := validConfidences([]Confidence{good}); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(c *Confidence){
		"way":      func(c *Confidence) { c.By = "guess" },
		"variant":  func(c *Confidence) { c.Variant = "" },
		"no bins":  func(c *Confidence) { c.Bins = nil },
		"order":    func(c *Confidence) { c.Bins[1].From = 0 },
		"share":    func(c *Confidence) { c.Bins[1].Share = 0.4 },
		"accuracy": func(c *Confidence) { c.Bins[1].Accuracy = math.NaN() },
		"others":   func(c *Confidence) { c.Bins[1].Others = map[string]float64{"w": 2} },
	} {
		bad := good
		bad.Bins = append([]ConfidenceBin(nil), good.Bins...)
		spoil(&bad)
		if validConfidences([]Confidence{bad}) == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if validConfidences([]Confidence{good, good}) == nil {
		t.Error("the same variant twice is taken")
	}
}
