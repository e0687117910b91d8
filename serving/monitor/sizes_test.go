package monitor

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluice-serving/sluice/serving"
)

// lognormal draws sizes whose logarithm is normal, cut off at 1000.
func lognormal(rng *rand.Rand, mean float64) int32 {
	return int32(min(max(math.Exp(mean+rng.NormFloat64()), 1), 1000))
}

// The statistic against its definition, for samples and mixes of few and of many sizes, some of them in one only.
func TestShiftAgainstDefinition(t *testing.T) {
	for seed := uint64(1); seed <= 300; seed++ {
		rng := rand.New(rand.NewPCG(seed, 1))
		most := 1 + rng.IntN(30)
		r := NewRates(1)
		var all []int32
		for range 1 + rng.IntN(500) {
			all = append(all, 1+rng.Int32N(int32(most)))
			r.AddSize(0, all[len(all)-1])
		}
		counts := map[int32]int{}
		for range 1 + rng.IntN(100) {
			counts[1+rng.Int32N(int32(most)+3)]++
		}
		mix := serving.CountMix(counts)
		n := 1 + rng.IntN(600)
		last := all[max(len(all)-n, 0):]
		want := 0.0
		for x := int32(0); x <= int32(most)+4; x++ {
			a, b := 0.0, 0.0
			for _, items := range last {
				if items <= x {
					a += 1 / float64(len(last))
				}
			}
			for k := range mix.Classes() {
				if items, share := mix.Class(k); int32(items) <= x {
					b += share
				}
			}
			want = max(want, math.Abs(a-b))
		}
		got, critical := r.Shift(0, &mix, n)
		if math.Abs(got-want) > 1e-9 {
			t.Fatalf("seed %d: %v, by definition %v", seed, got, want)
		}
		if c := criticalDeviation * math.Sqrt(1/float64(len(last))+1/float64(mix.Count)); math.Abs(c-critical) > 1e-9 {
			t.Fatalf("seed %d: critical %v, want %v", seed, critical, c)
		}
	}
}

// How often a steady mix counts as shifted under repeated comparisons, and how soon shifts show. Single comparisons
// exceed the deviation for one in twenty about that often, so the statistic is not merely too small.
func TestFalseAlarms(t *testing.T) {
	const streams, length, every = 100, 10000, 500
	alarms, twentieth := 0, 0
	for seed := uint64(1); seed <= streams; seed++ {
		rng := rand.New(rand.NewPCG(seed, 2))
		r := NewRates(1)
		for range 5000 {
			r.AddSize(0, lognormal(rng, 4))
		}
		planned, alarm := r.Mix(0), 0
		for n := 1; n <= length; n++ {
			r.AddSize(0, lognormal(rng, 4))
			if n%every == 0 {
				statistic, critical := r.Shift(0, &planned, n)
				if statistic > critical {
					alarm = 1
				}
				if n == every && statistic > critical*1.3581/criticalDeviation {
					twentieth++
				}
			}
		}
		alarms += alarm
	}
	t.Logf("of %d streams of %d queries %d raise a false alarm at one of %d looks; %d exceed the deviation for one "+
		"in twenty at their first", streams, length, alarms, length/every, twentieth)
	if alarms > 2 || twentieth < 1 || twentieth > 11 {
		t.Errorf("of %d streams %d raise a false alarm, %d exceed the deviation for one in twenty", streams, alarms,
			twentieth)
	}
	for _, c := range []struct{ more, within float64 }{{0.2, 5000}, {0.5, 750}} {
		var seen []int
		for seed := uint64(1); seed <= 20; seed++ {
			rng := rand.New(rand.NewPCG(seed, 3))
			r := NewRates(1)
			for range KeptSizes {
				r.AddSize(0, lognormal(rng, 4))
			}
			planned := r.Mix(0)
			for n := 1; len(seen) < int(seed); n++ {
				r.AddSize(0, lognormal(rng, 4+c.more))
				if n%250 == 0 {
					if statistic, critical := r.Shift(0, &planned, n); statistic > critical {
						seen = append(seen, n)
					}
				}
			}
		}
		slices.Sort(seen)
		t.Logf("sizes times %.2f are seen after %d queries in the median, %d at the latest", math.Exp(c.more),
			seen[len(seen)/2], seen[len(seen)-1])
		if seen[len(seen)-1] > int(c.within) {
			t.Errorf("sizes times %.2f were seen after %d queries only", math.Exp(c.more), seen[len(seen)-1])
		}
	}
}

// After a shift the mix drops what was before it. Of a steady stream it takes everything.
func TestMixFollows(t *testing.T) {
	short := 0
	for seed := uint64(1); seed <= 30; seed++ {
		rng := rand.New(rand.NewPCG(seed, 4))
		r := NewRates(2)
		for range 3 * KeptSizes {
			r.AddSize(1, lognormal(rng, 4))
		}
		if m := r.Mix(1); m.Count != KeptSizes {
			short++
		}
		for range 1250 {
			r.AddSize(1, lognormal(rng, 5))
		}
		m := r.Mix(1)
		if err := m.Validate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		old := 0.0 // share of what was before: the mean moves from one to the other
		for k := range m.Classes() {
			items, share := m.Class(k)
			old += share * math.Log(float64(items))
		}
		if m.Count > 2500 || math.Abs(old-5) > 0.25 {
			t.Errorf("seed %d: 1250 queries after a shift the mix is of %d queries, the mean logarithm %.2f, want 5",
				seed, m.Count, old)
		}
		if m := r.Mix(0); m.Count != 0 || m.Classes() != 1 {
			t.Errorf("seed %d: an app that nobody called has %v", seed, m)
		}
	}
	if short > 1 {
		t.Errorf("%d of 30 steady streams were cut short", short)
	}
}

// Queries of one item take no memory, and count once others come.
func TestOnes(t *testing.T) {
	r := NewRates(1)
	if n := testing.AllocsPerRun(100, func() { r.AddSize(0, 1) }); n != 0 {
		t.Errorf("%v allocations for a query of one item", n)
	}
	for r.SizesSeen(0) < 900 {
		r.AddSize(0, 1)
	}
	if m := r.Mix(0); m.Count != 900 || m.Classes() != 1 || m.Largest() != 1 {
		t.Errorf("900 of one item: %v", m)
	}
	given := serving.Mix{Sizes: []int32{1, 4}, Shares: []float64{0.25, 0.75}}
	statistic, critical := r.Shift(0, &given, 900)
	if statistic != 0.75 || math.Abs(critical-criticalDeviation/30) > 1e-12 {
		t.Errorf("statistic %v, critical %v", statistic, critical)
	}
	for range 100 {
		r.AddSize(0, 4)
	}
	if m := r.Mix(0); m.Count > 312 || m.Largest() != 4 {
		t.Errorf("after a shift from 1 to 4: %v", m)
	}
}

func BenchmarkSize(b *testing.B) {
	for _, c := range []struct {
		name  string
		items int32
	}{{"one", 1}, {"many", 7}} {
		b.Run(c.name, func(b *testing.B) {
			r := NewRates(1)
			b.ReportAllocs()
			for b.Loop() {
				r.AddSize(0, c.items)
			}
		})
	}
}

func BenchmarkShift(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 5))
	r := NewRates(1)
	for range KeptSizes {
		r.AddSize(0, lognormal(rng, 4))
	}
	mix := r.Mix(0)
	b.ReportAllocs()
	for b.Loop() {
		r.Shift(0, &mix, KeptSizes)
	}
}
