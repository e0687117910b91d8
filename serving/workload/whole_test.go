package workload

import (
	"math"
	"testing"

	"github.com/sluice-serving/sluice/serving"
)

// The table agrees with the closed form, for means from far below one to far above those at which e^-mean underflows.
func TestPoissonTable(t *testing.T) {
	for _, mean := range []float64{1e-6, 0.2, 1, 10.5, 20, 333.3, 5000} {
		var p poissonTable
		p.prepare(mean)
		below, sum, squares := 0.0, 0.0, 0.0
		for i, c := range p.below {
			k := float64(p.first + i)
			lg, _ := math.Lgamma(k + 1)
			want := math.Exp(k*math.Log(mean) - mean - lg)
			if math.Abs(c-below-want) > 1e-11 {
				t.Fatalf("mean %v: P(%v) is %v, want %v", mean, k, c-below, want)
			}
			sum += k * (c - below)
			squares += (k - mean) * (k - mean) * (c - below)
			below = c
		}
		if math.Abs(below-1) > 1e-12 || math.Abs(sum-mean) > 1e-9*(1+mean) || math.Abs(squares-mean) > 1e-8*(1+mean) {
			t.Errorf("mean %v: probabilities end at %v, mean %v, variance %v", mean, below, sum, squares)
		}
		if last := p.at(math.Nextafter(1, 0)); p.at(0) != p.first || last >= p.first+len(p.below) ||
			float64(last) < mean+6*math.Sqrt(mean) {
			t.Errorf("mean %v: from %d to %d, the table from %d on", mean, p.at(0), last, p.first)
		}
	}
}

// Gaps are whole milliseconds with mean and variance 1/rate, in ms, also while the rate changes.
func TestWholeMilliseconds(t *testing.T) {
	for _, rate := range []float64{0.5, 40, 95, 4000} {
		const n = 200_000
		w := NewWholeMilliseconds(constant(t, rate), Rand(5, "gaps"))
		last, sum, squares := serving.Time(0), 0.0, 0.0
		mean := 1000 / rate
		for range n {
			at, ok := w.NextTime()
			if !ok || at < last || (at-last)%1e6 != 0 {
				t.Fatalf("rate %v: from %v to %v, %v", rate, last, at, ok)
			}
			gap := float64(at-last) / 1e6
			sum, squares, last = sum+gap, squares+(gap-mean)*(gap-mean), at
		}
		// The excess kurtosis of a Poisson distribution is 1/mean.
		if z := (sum/n - mean) / math.Sqrt(mean/n); math.Abs(z) > 3.5 {
			t.Errorf("rate %v: mean gap %v ms is %.1f standard errors from %v", rate, sum/n, z, mean)
		}
		if z := (squares/n - mean) / (mean * math.Sqrt((2+1/mean)/n)); math.Abs(z) > 3.5 {
			t.Errorf("rate %v: variance %v ms^2 is %.1f standard errors from %v", rate, squares/n, z, mean)
		}
	}
	rate, err := NewRate([]Point{{0, 100}, {50, 0}, {60, 400}, {100, 0}}, false)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWholeMilliseconds(rate, Rand(5, "steps"))
	count := map[int]int{}
	for {
		at, ok := w.NextTime()
		if !ok {
			break
		}
		count[int(at.Seconds())/50]++
	}
	if a, b := count[0], count[1]; math.Abs(float64(a)-5000) > 3.5*math.Sqrt(5000*0.1)+1 ||
		math.Abs(float64(b)-16_000) > 3.5*math.Sqrt(16_000*0.4)+1 {
		t.Errorf("%d and %d queries, want 5,000 and 16,000", a, b)
	}
	if _, ok := w.NextTime(); ok {
		t.Error("came back to life")
	}
}

// A higher rate makes every query of a seed arrive earlier. Loads of two rates differ in nothing else.
func TestWholeMillisecondsAreMonotone(t *testing.T) {
	rates := []float64{20, 21, 30, 100, 1500}
	var all []*WholeMilliseconds
	for _, r := range rates {
		all = append(all, NewWholeMilliseconds(constant(t, r), Rand(3, "gaps")))
	}
	for n := range 5000 {
		last := serving.Never
		for i, w := range all {
			at, _ := w.NextTime()
			if at > last {
				t.Fatalf("query %d comes at %v at %v/s, at %v at %v/s", n, last, rates[i-1], at, rates[i])
			}
			last = at
		}
	}
}

func BenchmarkWholeMilliseconds(b *testing.B) {
	w := NewWholeMilliseconds(constant(b, 95), Rand(1, "gaps"))
	b.ReportAllocs()
	for b.Loop() {
		w.NextTime()
	}
}
