package priced

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Two tasks of an app with 100 ms have 50 and 90 ms left, and what is worth as many hundredths as ms are left waits
// for a machine. Another one is free after 40 ms. A batch of 10 ms and one more like it are over after 20: the tasks
// have 30 and 70 ms then, and are worth 0.3 and 0.7. A batch of 60 ms is not: they have 10 and 50 ms when the other
// machine is free.
func TestWhatIsLeftWaitsForAMachine(t *testing.T) {
	r, x := firstOfTwo(50, 90)
	a := &r.apps[0]
	for j := range x.tables[0].values {
		x.tables[0].values[j] = float64(j) / steps
	}
	x.until[0] = 0.04
	for _, c := range []struct {
		takes, first, both float64
	}{{0.01, 0.3, 1}, {0.06, 0.1, 0.6}} {
		for n, want := range map[int]float64{1: c.first, 2: c.both} {
			if got := x.lost[0].value(x, a, 0, 0, n, c.takes); math.Abs(got-want) > 0.02 { // 128 steps
				t.Errorf("%d tasks left by a batch of %v s are worth %v, want %v", n, c.takes, got, want)
			}
		}
	}
	x.behind = 0.01 // others come before them
	if got := x.lost[0].value(x, a, 0, 0, 1, 0.01); math.Abs(got-0.2) > 0.02 {
		t.Errorf("a task that waits 10 ms more is worth %v, want 0.2", got)
	}
}

// Whatever ranges are asked for one after the other, the sums that are kept are those of the tasks in them.
func TestSumsOfTasksLeftBehind(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 1))
	left := make([]float64, 40)
	for k := range left {
		left[k] = 100 * rng.Float64()
	}
	r, x := firstOfTwo(left...)
	a := &r.apps[0]
	x.rate = 500
	for j := range x.tables[0].values {
		x.tables[0].values[j] = float64(j) / steps
	}
	x.until[0] = 0.004
	for range 2000 {
		i := rng.IntN(len(left))
		n := 1 + rng.IntN(len(left)-i)
		takes := 0.001 * float64(1+rng.IntN(3))
		want := 0.0
		for k := i; k < i+n; k++ {
			want += x.later(a, 0, k, x.waitFor(0, takes))
		}
		if got := x.lost[0].value(x, a, 0, i, n, takes); math.Abs(got-want) > 1e-9 {
			t.Fatalf("seed %d: tasks %d to %d are worth %v if left behind, want %v", seed, i, i+n, got, want)
		}
	}
}
