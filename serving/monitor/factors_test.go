package monitor

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// chain is an app of two stages whose edge is configured with a fan-out.
func chain(fan float64) *serving.Spec {
	return &serving.Spec{
		Apps: make([]serving.App, 1),
		Stages: []serving.Stage{
			{Name: "detect", Next: []serving.Edge{{To: 1, FanOut: fan}}}, {Name: "classify", Joins: 1},
		},
	}
}

// follow plays content: frames come at a rate, the items of each are drawn, and every tenth of a second a plan is made
// where factors have changed, at the earliest a second after the last plan. It returns the times of the plans and their
// factors.
func follow(t *testing.T, fan, fps float64, until time.Duration, seed uint64,
	sends func(rng *rand.Rand, frame int, at serving.Time) float64) (at []serving.Time, with []float64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	f := NewFactors(chain(fan))
	var fans [][]float64
	next, frame, last := serving.Time(0), 0, -serving.Time(time.Second)
	for look := serving.Time(1); look < serving.Time(until); look += width {
		for ; next < look; frame++ {
			f.AddItems(next, 0, 0, 1, sends(rng, frame, next))
			next += serving.Time(float64(time.Second) / fps * (0.5 + rng.Float64()))
		}
		if look-last >= serving.Time(time.Second) && f.Changed(look, fans, nil, 0) {
			fans, last = f.Scalings(look), look
			at = append(at, look)
			x := fan
			if fans != nil {
				x = fans[0][0]
			}
			with = append(with, x)
		}
	}
	return at, with
}

// A step from nothing to 8 shows within a second and is planned for in full after at most two plans. The way back is
// planned for once, after FallDelay.
func TestStep(t *testing.T) {
	for _, fps := range []float64{5, 10, 30, 200} {
		for seed := range uint64(20) {
			up, down := serving.Time(20*time.Second), serving.Time(40*time.Second)
			at, with := follow(t, 0, fps, 80*time.Second, seed, func(_ *rand.Rand, _ int, now serving.Time) float64 {
				if now >= up && now < down {
					return 8
				}
				return 0
			})
			if len(at) < 2 || at[0] < up || at[0] > up+serving.Time(time.Second) {
				t.Fatalf("seed %d, %v frames/s: a step at 20 s is planned for at %v", seed, fps, at)
			}
			n := len(at)
			if n > 3 || at[n-1] < down+serving.Time(FallDelay) || at[n-1] > down+serving.Time(FallDelay)+
				serving.Time(7*time.Second) {
				t.Errorf("seed %d, %v frames/s: plans at %v with %v: want one or two up and one down", seed, fps, at,
					with)
			}
			if x := with[n-2]; math.Abs(x-8) > 0.5 {
				t.Errorf("seed %d, %v frames/s: planned with %v, want 8", seed, fps, x)
			}
			if x := with[n-1]; x > 0.5 {
				t.Errorf("seed %d, %v frames/s: planned with %v, want nothing", seed, fps, x)
			}
		}
	}
}

// Content that varies around the planned level leads to no plan, whether it varies by frame, by chance, or in bursts of
// a third of a second. The first plan may be too small for bursts; then there is one more for them.
func TestVaryingContentLeadsToNoPlan(t *testing.T) {
	counts := func(mean float64) func(*rand.Rand, int, serving.Time) float64 {
		return func(rng *rand.Rand, _ int, _ serving.Time) float64 {
			n, p := -1.0, 1.0
			for limit := math.Exp(-mean); p > limit; n++ {
				p *= rng.Float64()
			}
			return n
		}
	}
	for name, c := range map[string]struct {
		most  int // plans in a hundred seconds, all seeds together
		fan   float64
		sends func(*rand.Rand, int, serving.Time) float64
	}{
		"flips":  {0, 4, func(_ *rand.Rand, k int, _ serving.Time) float64 { return 8 * float64(k%2) }},
		"coin":   {8, 4, func(rng *rand.Rand, _ int, _ serving.Time) float64 { return 8 * float64(rng.IntN(2)) }},
		"counts": {8, 3, counts(3)},
		"rare":   {8, 0.1, counts(0.1)},
		"bursts": {40, 4, func(_ *rand.Rand, _ int, at serving.Time) float64 {
			return 8 * float64(at/serving.Time(300*time.Millisecond)%2)
		}},
		"slow bursts": {40, 4, func(_ *rand.Rand, _ int, at serving.Time) float64 {
			return 8 * float64(at/serving.Time(2*time.Second)%2)
		}},
		"slower still": {60, 4, func(_ *rand.Rand, _ int, at serving.Time) float64 {
			return 8 * float64(at/serving.Time(8*time.Second)%2)
		}},
	} {
		for _, fps := range []float64{4, 30} {
			plans := 0
			for seed := range uint64(20) {
				at, _ := follow(t, c.fan, fps, 100*time.Second, seed, c.sends)
				plans += len(at)
			}
			t.Logf("%s at %v frames/s: %d plans in 20 runs of 100 s", name, fps, plans)
			if plans > c.most {
				t.Errorf("%s at %v frames/s: %d plans in 20 runs of 100 s, want at most %d", name, fps, plans, c.most)
			}
		}
	}
}

// Doubled run times show within a second. A rare batch of five times the length does not, nor does a belief that is too
// long. The factor of a stage that runs nothing returns to 1.
func TestBallooning(t *testing.T) {
	spec := chain(1)
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 2))
		f := NewFactors(spec)
		run := func(from, to serving.Time, took func() float64) (changed serving.Time) {
			for now := from; now < to; now += 40e6 {
				f.AddBatch(now, 0, 30*time.Millisecond, time.Duration(30e6*took()))
				if changed == 0 && f.Changed(now, nil, nil, 0) {
					changed = now
				}
			}
			return changed
		}
		if at := run(1, 30e9, func() float64 { return max(0.5, 0.9+0.1*rng.NormFloat64()) }); at > 0 {
			t.Fatalf("seed %d: ordinary batches are news at %v", seed, at)
		}
		if x := f.Ballooning(30e9, 0); x != 1 {
			t.Fatalf("seed %d: ordinary batches balloon by %v", seed, x)
		}
		every := 0
		if at := run(30e9, 60e9, func() float64 {
			if every++; every%25 == 0 {
				return 5
			}
			return 0.9
		}); at > 0 {
			t.Fatalf("seed %d: one slow batch a second is news at %v", seed, at)
		}
		at := run(60e9, 75e9, func() float64 { return 2 + 0.2*rng.NormFloat64() })
		if at < 60e9 || at > 61e9 {
			t.Fatalf("seed %d: run times that double at 60 s are news at %v", seed, at)
		}
		with := f.Balloonings(75e9)
		if with == nil || math.Abs(with[0]-2) > 0.1 || with[1] != 1 {
			t.Fatalf("seed %d: ballooning %v, want 2 and 1", seed, with)
		}
		if f.Changed(75e9, nil, with, 0) {
			t.Errorf("seed %d: what was planned with is news", seed)
		}
		if !f.Changed(95e9, nil, with, 0) || f.Balloonings(95e9) != nil {
			t.Errorf("seed %d: after 20 s without a batch, ballooning is %v", seed, f.Balloonings(95e9))
		}
	}
}

// An edge along which nothing is sent any more keeps leastFan. An edge of a stage that serves nothing is as configured.
func TestScalingOfNothing(t *testing.T) {
	f := NewFactors(chain(2))
	if f.Scalings(0) != nil || f.Changed(0, nil, nil, 0) {
		t.Error("before anything was seen, something differs")
	}
	for now := serving.Time(0); now < 20e9; now += 50e6 {
		f.AddItems(now, 0, 0, 1, 0)
	}
	if x := f.Scaling(20e9, 0, 0); x != 0.1 {
		t.Errorf("planned with %v, want a twentieth of what is configured", x)
	}
	if !f.Changed(20e9, nil, nil, 0) || f.Changed(20e9, [][]float64{{0.1}}, nil, 0) {
		t.Error("news where there is none, or none where there is")
	}
	if x := f.Scaling(40e9, 0, 0); x != 2 {
		t.Errorf("after 20 s without anything %v, want what is configured", x)
	}
}

func TestFactorsDoNotAllocate(t *testing.T) {
	f := NewFactors(chain(2))
	now := serving.Time(0)
	fans := [][]float64{{2}}
	if n := testing.AllocsPerRun(1000, func() {
		now += 30e6
		f.AddItems(now, 0, 0, 1, 2)
		f.AddBatch(now, 0, 10e6, 11e6)
		f.Changed(now, fans, nil, 0)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkFactors(b *testing.B) {
	f := NewFactors(chain(2))
	now := serving.Time(0)
	b.ReportAllocs()
	for b.Loop() {
		now += 1e6
		f.AddItems(now, 0, 0, 1, 2)
		f.AddBatch(now, 0, 10e6, 11e6)
	}
}
