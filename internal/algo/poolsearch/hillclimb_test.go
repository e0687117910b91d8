package poolsearch

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"
)

// Rising to a peak and falling behind it, with random slopes: the climb ends at the peak, evaluates no place twice, and
// takes a number of evaluations that is logarithmic in the interval when its first step is of the interval's size.
func TestClimbFindsPeak(t *testing.T) {
	for seed := uint64(1); seed <= 300; seed++ {
		rng := rand.New(rand.NewPCG(seed, 6))
		low := rng.IntN(100) - 50
		n := 1 + rng.IntN(500)
		peak := rng.IntN(n)
		value := make([]float64, n)
		for i := peak - 1; i >= 0; i-- {
			value[i] = value[i+1] - rng.ExpFloat64() - 1e-9
		}
		for i := peak + 1; i < n; i++ {
			value[i] = value[i-1] - rng.ExpFloat64() - 1e-9
		}
		c, err := NewHillClimb(low, low+n-1, low+rng.IntN(n), max(1, n/2))
		if err != nil {
			t.Fatal(err)
		}
		seen := make(map[int]bool)
		for x, ok := c.Next(); ok; x, ok = c.Next() {
			if seen[x] || x < low || x >= low+n {
				t.Fatalf("seed %d: asks for %d in %d..%d, seen %v", seed, x, low, low+n-1, seen[x])
			}
			seen[x] = true
			c.Tell(value[x-low])
		}
		if x, v, ok := c.Best(); !ok || x != low+peak || v != 0 {
			t.Errorf("seed %d: ends at %d with %v, the peak is at %d", seed, x, v, low+peak)
		}
		if most := 4*bits.Len(uint(n)) + 4; len(seen) > most {
			t.Errorf("seed %d: %d evaluations in an interval of %d, want at most %d", seed, len(seen), n, most)
		}
	}
}

// From 10 by steps of 4 with the peak at 17: 14 and 18 rise, 22 falls, 14 is known; by 2, 20 and 16 are below; by 1, 19
// is below and 17 above, on whose other side 16 is known.
func TestClimbByHand(t *testing.T) {
	c, err := NewHillClimb(0, 100, 10, 4)
	if err != nil {
		t.Fatal(err)
	}
	var asked []int
	for x, ok := c.Next(); ok; x, ok = c.Next() {
		asked = append(asked, x)
		c.Tell(-math.Abs(float64(x) - 17.1))
	}
	want := []int{10, 14, 18, 22, 20, 16, 19, 17}
	if len(asked) != len(want) {
		t.Fatalf("asked for %v, want %v", asked, want)
	}
	for i := range want {
		if asked[i] != want[i] {
			t.Fatalf("asked for %v, want %v", asked, want)
		}
	}
	if x, _, _ := c.Best(); x != 17 {
		t.Errorf("ends at %d, want 17", x)
	}
}

// A point whose evaluation fails is skipped.
func TestClimbUnknown(t *testing.T) {
	c, err := NewHillClimb(0, 10, 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	for x, ok := c.Next(); ok; x, ok = c.Next() {
		v := float64(x)
		if x == 0 || x == 10 {
			v = math.NaN()
		}
		c.Tell(v)
	}
	if x, v, ok := c.Best(); x != 9 || v != 9 || !ok {
		t.Errorf("ends at %d with %v, want 9", x, v)
	}
}

func TestClimbRefuses(t *testing.T) {
	if _, err := NewHillClimb(3, 5, 6, 1); err == nil || !strings.Contains(err.Error(), "begin inside") {
		t.Errorf("from outside: %v", err)
	}
	if _, err := NewHillClimb(3, 5, 4, 0); err == nil || !strings.Contains(err.Error(), "at least 1") {
		t.Errorf("step 0: %v", err)
	}
}
