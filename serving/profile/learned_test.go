package profile

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

var _ Learner = (*Learned)(nil)

func wide(most, devices int) *serving.Spec {
	return &serving.Spec{
		DeviceTypes: make([]serving.DeviceType, devices), Variants: []serving.Variant{{Name: "v", MaxBatch: most}},
	}
}

func TestClasses(t *testing.T) {
	last := -1
	for items := 1; items <= 1<<20; items++ {
		k := classOf(items)
		if k != last && k != last+1 {
			t.Fatalf("class of %d is %d, after %d", items, k, last)
		}
		if top := largestIn(k); top < items || float64(top) > 1.008*float64(items) || classOf(top) != k ||
			classOf(top+1) != k+1 {
			t.Fatalf("%d items are in class %d, whose largest is %d", items, k, top)
		}
		last = k
	}
}

// machine is a straight line with what real ones do to it.
type machine struct {
	base, item time.Duration
	noise      float64 // deviation relative to the mean
	outliers   float64 // share of batches that take ten times as long
}

func (m *machine) run(rng *rand.Rand, items int) time.Duration {
	x := float64(m.base) + float64(items)*float64(m.item)
	x *= max(1+m.noise*rng.NormFloat64(), 0.1)
	if rng.Float64() < m.outliers {
		x *= 10
	}
	return time.Duration(x)
}

// draw returns sizes like those of recommendation queries: most small, some very large.
func draw(rng *rand.Rand, most int) int {
	return min(max(int(math.Exp(4+1.2*rng.NormFloat64())), 1), most)
}

// wrong returns the mean and the largest relative error over drawn sizes.
func wrong(p Profile, m *machine, rng *rand.Rand, most int) (mean, worst float64) {
	for range 2000 {
		items := draw(rng, most)
		truth := float64(m.base) + float64(items)*float64(m.item)
		e := math.Abs(float64(p.Latency(0, 0, items, 1))/truth - 1)
		mean += e / 2000
		worst = max(worst, e)
	}
	return mean, worst
}

// rising fails when latency falls with items.
func rising(t *testing.T, p Profile, d serving.DeviceTypeID, most, concurrency int) {
	t.Helper()
	for items := 2; items <= most; items++ {
		if a, b := p.Latency(0, d, items-1, concurrency), p.Latency(0, d, items, concurrency); a > b || a <= 0 ||
			b >= Unknown {
			t.Fatalf("%d items take %v, %d take %v", items-1, a, items, b)
		}
	}
}

// Errors fall to a few per cent after some dozens of queries in any order, although one batch in ten takes ten times as
// long.
func TestLearning(t *testing.T) {
	const most = 1000
	for _, c := range []struct {
		name  string
		m     machine
		after int
		mean  float64
	}{
		{"as published", machine{12 * time.Millisecond, 180 * time.Microsecond, 0.005, 0}, 20, 0.02},
		{"as published, later", machine{12 * time.Millisecond, 180 * time.Microsecond, 0.005, 0}, 1000, 0.005},
		{"noisy", machine{2 * time.Millisecond, 50 * time.Microsecond, 0.05, 0}, 1000, 0.03},
		{"very noisy", machine{2 * time.Millisecond, 50 * time.Microsecond, 0.3, 0}, 10000, 0.08},
		{"outliers", machine{12 * time.Millisecond, 180 * time.Microsecond, 0.005, 0.1}, 50, 0.05},
		{"outliers, later", machine{12 * time.Millisecond, 180 * time.Microsecond, 0.005, 0.1}, 2000, 0.02},
		{"constant", machine{30 * time.Millisecond, 0, 0.01, 0.1}, 100, 0.02},
		{"in proportion", machine{0, time.Millisecond, 0.01, 0.1}, 100, 0.03},
	} {
		sum, worst := 0.0, 0.0
		const seeds = 20
		for seed := uint64(1); seed <= seeds; seed++ {
			rng := rand.New(rand.NewPCG(seed, 2))
			l := NewLearned(wide(most, 1), nil)
			for range c.after {
				items := draw(rng, most)
				l.Observe(0, 0, items, 1, c.m.run(rng, items))
			}
			rising(t, l, 0, most, 1)
			mean, w := wrong(l, &c.m, rng, most)
			if mean > 3*c.mean {
				t.Errorf("%s, seed %d: off by %.1f %% in the mean after %d queries", c.name, seed, 100*mean, c.after)
			}
			sum, worst = sum+mean/seeds, max(worst, w)
		}
		t.Logf("%s: after %d queries off by %.2f %% in the mean over %d seeds, %.1f %% at the worst", c.name, c.after,
			100*sum, seeds, 100*worst)
		if sum > c.mean {
			t.Errorf("%s: after %d queries off by %.2f %% in the mean, want at most %.2f %%", c.name, c.after, 100*sum,
				100*c.mean)
		}
	}
}

// What no line describes is learned size by size.
func TestTableTakesOver(t *testing.T) {
	l := NewLearned(wide(64, 1), nil)
	truth := func(items int) time.Duration { // in steps of 16, as tiles of a processor
		return time.Duration((items+15)/16) * 10 * time.Millisecond
	}
	rng := rand.New(rand.NewPCG(1, 3))
	for range 64 * 3 * minObservations {
		items := 1 + rng.IntN(64)
		l.Observe(0, 0, items, 1, truth(items))
	}
	for items := 1; items <= 64; items++ {
		if got := l.Latency(0, 0, items, 1); math.Abs(float64(got-truth(items))) > 1e3 {
			t.Errorf("%d items: %v, want %v", items, got, truth(items))
		}
	}
}

// A machine that becomes slower, or faster, is followed within a few dozen queries, also at sizes not seen since.
func TestDrift(t *testing.T) {
	const most = 1000
	for seed := uint64(1); seed <= 20; seed++ {
		rng := rand.New(rand.NewPCG(seed, 4))
		m := machine{10 * time.Millisecond, 100 * time.Microsecond, 0.01, 0.1}
		l := NewLearned(wide(most, 1), nil)
		watch := func(n, cap int) {
			for range n {
				items := min(draw(rng, most), cap)
				l.Observe(0, 0, items, 1, m.run(rng, items))
			}
		}
		watch(3000, most)
		for _, by := range []float64{1.5, 4, 0.1} {
			before := l.Epoch()
			m.base, m.item = time.Duration(float64(m.base)*by), time.Duration(float64(m.item)*by)
			watch(40, 60)
			if l.Epoch() == before {
				t.Errorf("seed %d: times %v, and the epoch has not moved", seed, by)
			}
			for _, items := range []int{10, 50, 200, 600} {
				truth := float64(m.base) + float64(items)*float64(m.item)
				if got := float64(l.Latency(0, 0, items, 1)) / truth; math.Abs(got-1) > 0.15 {
					t.Errorf("seed %d: times %v, %d items are believed to take %.2f of what they do", seed, by, items,
						got)
				}
			}
			rising(t, l, 0, most, 1)
			watch(1500, most)
			if mean, _ := wrong(l, &m, rng, most); mean > 0.05 {
				t.Errorf("seed %d: times %v, off by %.1f %% long after", seed, by, 100*mean)
			}
		}
	}
}

// An unknown device type looks better than a known one, so that it is tried; a few batches make it known.
func TestUnknownIsTried(t *testing.T) {
	l := NewLearned(wide(100, 2), nil)
	if l.Known(0, 0) || l.Latency(0, 0, 1, 1) != unseenLatency || l.Latency(0, 0, 101, 1) != Unknown ||
		l.Latency(0, 0, 0, 1) != Unknown {
		t.Error("before anything was seen")
	}
	for n := range minObservations {
		if l.Known(0, 0) {
			t.Errorf("known after %d batches", n)
		}
		l.Observe(0, 0, 10, 1, time.Second)
	}
	if !l.Known(0, 0) || l.Known(0, 1) || l.Epoch() != 1 {
		t.Errorf("after %d batches: known %v, epoch %d", minObservations, l.Known(0, 0), l.Epoch())
	}
	for _, items := range []int{1, 5, 10, 100} {
		if a, b := l.Latency(0, 0, items, 1), l.Latency(0, 1, items, 1); b != a/2 {
			t.Errorf("%d items: %v on the type that is known, %v on the other", items, a, b)
		}
	}
	// One size says little about the others: the lowest possible curve is believed.
	if small, large := l.Latency(0, 0, 1, 1), l.Latency(0, 0, 100, 1); small != time.Second/10 || large != time.Second {
		t.Errorf("10 items take 1s, 1 is believed to take %v, 100 %v", small, large)
	}
}

// A prior is believed until something is seen, and keeps its shape after.
func TestPrior(t *testing.T) {
	prior := Constant{Base: 10 * time.Millisecond, PerItem: time.Millisecond, LoadTime: time.Minute}
	l := NewLearned(wide(100, 1), prior)
	if !l.Known(0, 0) || l.Latency(0, 0, 20, 1) != prior.Latency(0, 0, 20, 1) || l.Load(0, 0) != time.Minute {
		t.Error("the prior is not believed")
	}
	for _, items := range []int{20, 21, 22, 23, 24} {
		l.Observe(0, 0, items, 1, 2*prior.Latency(0, 0, items, 1))
	}
	for items := 1; items <= 100; items++ {
		if got, want := l.Latency(0, 0, items, 1), 2*prior.Latency(0, 0, items, 1); got != want {
			t.Errorf("%d items: %v, want %v", items, got, want)
		}
	}
}

// Latency never falls with items, whatever is observed in whatever order, at every concurrency. A frozen copy answers
// as the original did, and goes on to do so.
func TestLearnedProperties(t *testing.T) {
	for seed := uint64(1); seed <= 60; seed++ {
		rng := rand.New(rand.NewPCG(seed, 5))
		most := []int{1, 2, 7, 40, 300, 2000}[rng.IntN(6)]
		var prior Profile
		if rng.IntN(3) == 0 {
			prior = Constant{Base: time.Duration(rng.IntN(1e6)), PerItem: time.Duration(1 + rng.IntN(1e6))}
		}
		l := NewLearned(wide(most, 2), prior)
		var frozen Profile
		var said []time.Duration
		say := func(p Profile) (out []time.Duration) {
			for d := range serving.DeviceTypeID(2) {
				for c := 1; c <= concurrencyLevels+2; c += 3 {
					for items := 1; items <= most; items += 1 + most/20 {
						out = append(out, p.Latency(0, d, items, c))
					}
				}
			}
			return out
		}
		for n := range 400 {
			items := 1 + rng.IntN(most)
			took := time.Duration(math.Exp(rng.Float64() * 30))
			if rng.IntN(20) == 0 {
				items, took = []int{0, -1, most + 1, 1}[rng.IntN(4)],
					[]time.Duration{0, -5, 1, math.MaxInt64}[rng.IntN(4)]
			}
			l.Observe(0, serving.DeviceTypeID(rng.IntN(2)), items, 1+rng.IntN(concurrencyLevels+2), took)
			if n == 200 {
				frozen = l.Frozen()
				said = say(frozen)
				for d := range serving.DeviceTypeID(2) {
					if got, want := frozen.Latency(0, d, most, 2), l.Latency(0, d, most, 2); l.Known(0, d) &&
						got != want || !l.Known(0, d) && got != Unknown {
						t.Fatalf("seed %d: %v is believed, frozen %v", seed, want, got)
					}
				}
			}
		}
		for d := range serving.DeviceTypeID(2) {
			for c := 1; c <= concurrencyLevels+2; c++ {
				rising(t, l, d, most, c)
			}
		}
		for k, x := range say(frozen) {
			if x != said[k] {
				t.Fatalf("seed %d: a frozen copy said %v and says %v", seed, said[k], x)
			}
		}
	}
}

// Each concurrency is learned by itself, and answers for those that were not seen.
func TestConcurrency(t *testing.T) {
	l := NewLearned(wide(1, 1), nil)
	for range minObservations {
		l.Observe(0, 0, 1, 3, 30)
	}
	for c, want := range []time.Duration{30, 30, 30, 30, 30} {
		if got := l.Latency(0, 0, 1, c+1); got != want {
			t.Errorf("%d at once: %d, want %d", c+1, got, want)
		}
	}
	for range minObservations {
		l.Observe(0, 0, 1, 1, 10)
	}
	for c, want := range []time.Duration{10, 10, 30, 30, 30} {
		if got := l.Latency(0, 0, 1, c+1); got != want {
			t.Errorf("%d at once: %d, want %d", c+1, got, want)
		}
	}
}

// A steady machine does not move the epoch once it is known: plans would be made for nothing.
func TestEpochRests(t *testing.T) {
	moves := uint64(0)
	for seed := uint64(1); seed <= 10; seed++ {
		rng := rand.New(rand.NewPCG(seed, 6))
		m := machine{10 * time.Millisecond, 100 * time.Microsecond, 0.02, 0.02}
		l := NewLearned(wide(1000, 1), nil)
		watch := func(n int) {
			for range n {
				items := draw(rng, 1000)
				l.Observe(0, 0, items, 1, m.run(rng, items))
			}
		}
		watch(2000)
		before := l.Epoch()
		watch(20000)
		moves += l.Epoch() - before
	}
	t.Logf("%d moves in 200,000 observations of steady machines", moves)
	if moves > 20 {
		t.Errorf("%d moves in 200,000 observations of steady machines", moves)
	}
}

func TestMedian(t *testing.T) {
	for seed := uint64(1); seed <= 500; seed++ {
		rng := rand.New(rand.NewPCG(seed, 7))
		x := make([]float64, 1+rng.IntN(40))
		for i := range x {
			x[i] = float64(rng.IntN(10))
		}
		below, above := 0, 0
		m := median(x)
		for _, y := range x {
			if y < m {
				below++
			}
			if y > m {
				above++
			}
		}
		if below > (len(x)-1)/2 || above > len(x)/2 {
			t.Fatalf("seed %d: %v of %v", seed, m, x)
		}
	}
}

func steady(b *testing.B, most int) (*Learned, []int) {
	l, rng := NewLearned(wide(most, 4), nil), rand.New(rand.NewPCG(1, 8))
	sizes := make([]int, 1<<12)
	for n := range sizes {
		sizes[n] = draw(rng, most)
	}
	for range 20 {
		for _, items := range sizes {
			l.Observe(0, 0, items, 1, time.Duration(1000+items)*time.Microsecond)
		}
	}
	b.ReportAllocs()
	return l, sizes
}

func BenchmarkObserve(b *testing.B) {
	for _, most := range []int{1, 32, 1000} {
		b.Run(map[int]string{1: "1", 32: "32", 1000: "1000"}[most], func(b *testing.B) {
			l, sizes := steady(b, most)
			n := 0
			for b.Loop() {
				items := sizes[n%len(sizes)]
				l.Observe(0, 0, items, 1, time.Duration(1000+items+n%7)*time.Microsecond)
				n++
			}
		})
	}
}

func BenchmarkLearnedLatency(b *testing.B) {
	l, sizes := steady(b, 1000)
	n := 0
	for b.Loop() {
		_ = l.Latency(0, 0, sizes[n%len(sizes)], 1)
		n++
	}
}

func TestObserveDoesNotAllocate(t *testing.T) {
	l, rng := NewLearned(wide(1000, 1), nil), rand.New(rand.NewPCG(1, 9))
	watch := func() {
		items := draw(rng, 1000)
		l.Observe(0, 0, items, 1, time.Duration(1000+items+rng.IntN(100))*time.Microsecond)
	}
	for items := 1; items <= 1000; items++ {
		l.Observe(0, 0, items, 1, time.Duration(1000+items)*time.Microsecond)
	}
	if n := testing.AllocsPerRun(5000, watch); n != 0 {
		t.Errorf("%v allocations for each observation", n)
	}
	if n := testing.AllocsPerRun(100, func() { _ = l.Latency(0, 0, 500, 1) }); n != 0 {
		t.Errorf("%v allocations for each look-up", n)
	}
}

// How far a line is believed depends on what it was drawn through: sizes that lie close together say little of much
// larger ones, which are believed to be fast until one was tried.
func TestLearnedReach(t *testing.T) {
	took := func(items int) time.Duration { return 3*time.Millisecond + time.Duration(items)*100*time.Microsecond }
	for _, c := range []struct {
		from, to, items, as int
	}{
		{1, 8, 64, 64}, {1, 8, 200, 64}, {6, 8, 64, 16}, {20, 100, 500, 500}, {20, 100, 900, 500},
	} {
		l := NewLearned(&serving.Spec{
			DeviceTypes: []serving.DeviceType{{}}, Variants: []serving.Variant{{MaxBatch: 1000}},
		}, nil)
		for range 20 {
			for n := c.from; n <= c.to; n++ {
				l.Observe(0, 0, n, 1, took(n))
			}
		}
		if got, want := l.Latency(0, 0, c.items, 1), took(c.as); got < want*9/10 || got > want*11/10 {
			t.Errorf("from sizes %d to %d, %d items are believed to take %v, want that of %d, %v", c.from, c.to,
				c.items, got, c.as, want)
		}
	}
}

// Small queries are tried on what was seen with large ones only, even where noise makes large ones of all sizes take
// the same: below half the smallest size seen, latency is believed proportional to the items.
func TestLearnedReachDown(t *testing.T) {
	took := map[int]time.Duration{192: 820, 205: 840, 220: 790, 241: 810, 256: 800} // ms
	l := NewLearned(&serving.Spec{
		DeviceTypes: []serving.DeviceType{{}}, Variants: []serving.Variant{{MaxBatch: 1000}},
	}, nil)
	for n, d := range took {
		l.Observe(0, 0, n, 1, d*time.Millisecond)
	}
	if got := l.Latency(0, 0, 192, 1); got < 700*time.Millisecond || got > 900*time.Millisecond {
		t.Errorf("192 items are believed to take %v, want about 800ms", got)
	}
	if got := l.Latency(0, 0, 8, 1); got > 100*time.Millisecond {
		t.Errorf("8 items, which nobody tried, are believed to take %v, want at most 100ms", got)
	}
	// What was tried is believed as observed.
	for range 5 {
		l.Observe(0, 0, 8, 1, 400*time.Millisecond)
	}
	if got := l.Latency(0, 0, 8, 1); got < 360*time.Millisecond || got > 440*time.Millisecond {
		t.Errorf("8 items are believed to take %v, want 400ms as observed", got)
	}
}
