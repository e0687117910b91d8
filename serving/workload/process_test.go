package workload

import (
	"math"
	"testing"
	"testing/quick"

	"github.com/sluice-serving/sluice/serving"
)

// The sample mean of n gaps of variance v is normal with variance v/n. Their sample variance has the variance
// (kurt+2)/n * v^2, where kurt is the excess kurtosis (6 for exponential gaps, 6/k for gamma of shape k).
func TestGapMeanAndVariance(t *testing.T) {
	gamma := func(k float64) Gaps {
		g, err := NewGamma(k)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	for _, c := range []struct {
		name               string
		gaps               Gaps
		variance, kurtosis float64
		n                  int
	}{
		{"poisson", Poisson{}, 1, 6, 200_000},
		{"gamma 0.05", gamma(0.05), 20, 120, 1_000_000},
		{"gamma 0.5", gamma(0.5), 2, 12, 400_000},
		{"gamma 1", gamma(1), 1, 6, 200_000},
		{"gamma 4", gamma(4), 0.25, 1.5, 200_000},
	} {
		r := Rand(7, c.name)
		sum, squares := 0.0, 0.0
		for range c.n {
			x := c.gaps.Gap(r)
			sum += x
			squares += (x - 1) * (x - 1)
		}
		n := float64(c.n)
		z := (sum/n - 1) / math.Sqrt(c.variance/n)
		if math.Abs(z) > 3.5 {
			t.Errorf("%s: mean %v is %.1f standard errors from 1", c.name, sum/n, z)
		}
		z = (squares/n - c.variance) / (c.variance * math.Sqrt((c.kurtosis+2)/n))
		if math.Abs(z) > 3.5 {
			t.Errorf("%s: variance %v is %.1f standard errors from %v", c.name, squares/n, z, c.variance)
		}
	}
}

func TestGammaShapeBounds(t *testing.T) {
	for _, k := range []float64{0, -1, math.NaN(), math.Inf(1), 1e-4} {
		if _, err := NewGamma(k); err == nil {
			t.Errorf("shape %v was accepted", k)
		}
	}
}

// With equal gaps, arrival i lies exactly where the cumulative rate is i + 1/2.
func TestTimeRescalingIsExact(t *testing.T) {
	points := []Point{{0, 100}, {2, 0}, {3, 400}, {5, 50}}
	for _, linear := range []bool{false, true} {
		rate, err := NewRate(points, linear)
		if err != nil {
			t.Fatal(err)
		}
		p := NewProcess(rate, Uniform{}, Rand(1, "x"))
		for i := range 2000 {
			at, ok := p.NextTime()
			if !ok {
				t.Fatalf("linear %v: ended after %d arrivals", linear, i)
			}
			// Rounding to a nanosecond moves the integral by at most rate x 1e-9.
			if got, want := rate.Expected(at), float64(i)+0.5; math.Abs(got-want) > 2e-6 {
				t.Fatalf("linear %v: arrival %d at %v: %v expected before it, want %v", linear, i, at, got, want)
			}
		}
	}
	step, _ := NewRate(points, false)
	lin, _ := NewRate(points, true)
	at5 := serving.Time(5e9)
	if got := step.Expected(at5); got != 100*2+0+400*2 {
		t.Errorf("step: %v queries before 5 s, want 1000", got)
	}
	if got := lin.Expected(at5); math.Abs(got-(100+200+450)) > 1e-9 {
		t.Errorf("linear: %v queries before 5 s, want 750", got)
	}
	if got := lin.At(serving.Time(2.5e9)); got != 200 {
		t.Errorf("linear: rate at 2.5 s is %v, want 200", got)
	}
}

func TestPoissonCountsFollowTheRate(t *testing.T) {
	rate, err := NewRate([]Point{{0, 1000}, {10, 5000}, {20, 200}, {30, 0}}, true)
	if err != nil {
		t.Fatal(err)
	}
	p := NewProcess(rate, Poisson{}, Rand(3, "counts"))
	counts := make([]float64, 30)
	for {
		at, ok := p.NextTime()
		if !ok {
			break
		}
		counts[int(at.Seconds())]++
	}
	chi := 0.0
	for i, n := range counts {
		want := rate.Expected(serving.Time(i+1)*1e9) - rate.Expected(serving.Time(i)*1e9)
		chi += (n - want) * (n - want) / want
	}
	// Chi-square with 30 degrees of freedom is below 59.7 and above 11.6 with 99.9 % each.
	if chi > 59.7 || chi < 11.6 {
		t.Errorf("chi-square of 30 counts is %.1f, want within [11.6, 59.7]", chi)
	}
}

func TestUniformFillsWholeSeconds(t *testing.T) {
	p := NewProcess(constant(t, 250), Uniform{}, nil)
	n := 0
	for {
		at, _ := p.NextTime()
		if at >= 4e9 {
			break
		}
		n++
	}
	if n != 1000 {
		t.Errorf("%d arrivals in 4 s at 250/s, want 1000", n)
	}
}

func TestProcessEndsWithTheRate(t *testing.T) {
	rate, _ := NewRate([]Point{{0, 10}, {1, 0}}, false)
	p := NewProcess(rate, Uniform{}, nil)
	n := 0
	for {
		if _, ok := p.NextTime(); !ok {
			break
		}
		n++
	}
	if n != 10 {
		t.Errorf("%d arrivals, want 10", n)
	}
	if _, ok := p.NextTime(); ok {
		t.Error("came back to life")
	}
}

func TestTimesNeverGoBack(t *testing.T) {
	f := func(seed uint64, raw []uint16, linear bool, shape uint8) bool {
		points := []Point{{0, 50}}
		for i, x := range raw {
			if i == 20 {
				break
			}
			points = append(points, Point{At: points[i].At + 0.01 + float64(x%97)/50, Rate: float64(x % 2000)})
		}
		rate, err := NewRate(points, linear)
		if err != nil {
			return false
		}
		g, err := NewGamma(0.05 + float64(shape)/64)
		if err != nil {
			return false
		}
		p := NewProcess(rate, g, Rand(seed, "order"))
		last := serving.Time(-1)
		for range 2000 {
			at, ok := p.NextTime()
			if !ok {
				return true
			}
			if at < last {
				return false
			}
			last = at
		}
		return true
	}
	if err := quick.Check(f, &quick.Config{MaxCount: 60}); err != nil {
		t.Error(err)
	}
}

func TestSizes(t *testing.T) {
	log, err := NewLognormal(2, 0.8, 200)
	if err != nil {
		t.Fatal(err)
	}
	hist, err := NewHistogram([]int32{1, 4, 100, 7}, []float64{5, 3, 0.5, 0})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		s    Sizes
		sd   float64 // upper bound of the standard deviation
	}{
		{"constant", ConstantSize(3), 0},
		{"uniform", UniformSize{2, 9}, 2.3},
		{"lognormal", log, 12},
		{"histogram", hist, 24},
	} {
		r := Rand(11, c.name)
		const n = 300_000
		sum := 0.0
		for range n {
			x := c.s.Draw(r)
			if x < 1 || x == 7 && c.name == "histogram" {
				t.Fatalf("%s drew %d", c.name, x)
			}
			sum += float64(x)
		}
		if got, bound := sum/n-c.s.Mean(), 3.5*c.sd/math.Sqrt(n)+1e-12; math.Abs(got) > bound {
			t.Errorf("%s: sample mean is off by %v, want within %v of %v", c.name, got, bound, c.s.Mean())
		}
	}
}

func TestNextDoesNotAllocate(t *testing.T) {
	s := &Spec{Seed: 1, DurationS: 1e6, Apps: []AppSpec{
		{
			App: "a", Rate: 1000, Process: "gamma", Shape: 0.3, Items: ItemsSpec{
				Distribution: "lognormal", Mu: 1, Sigma: 1, Max: 50,
			}, Samples: 100,
		},
		{
			App: "b", Rates: []Segment{{Rate: 10}, {AtS: 5, Rate: 700}}, Interpolate: "linear", Items: ItemsSpec{
				Distribution: "histogram", Sizes: []int32{1, 2}, Weights: []float64{1, 1},
			},
		},
	}}
	src, err := s.Source(func(app string) (serving.AppID, error) { return serving.AppID(app[0] - 'a'), nil })
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(10_000, func() { src.Next() }); n != 0 {
		t.Errorf("%v allocations per Next, want none", n)
	}
}

func BenchmarkNext(b *testing.B) {
	s := &Spec{Seed: 1, DurationS: 1e7, Apps: []AppSpec{{App: "a", Rate: 1000}}}
	src, err := s.Source(func(string) (serving.AppID, error) { return 0, nil })
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		src.Next()
	}
}
