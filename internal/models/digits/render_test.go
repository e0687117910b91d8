package digits

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// drawn renders one picture.
func drawn(seed uint64, size, label int) []float32 {
	c := canvas{size, make([]float32, size*size)}
	c.render(rand.New(rand.NewPCG(seed, uint64(label))), []int64{int64(label)}, Letters)
	return c.v
}

func TestRenderIsRepeatable(t *testing.T) {
	for label := range 10 {
		a, b, c := drawn(4, 48, label), drawn(4, 48, label), drawn(5, 48, label)
		if !slices.Equal(a, b) {
			t.Errorf("digit %d: the same generator gave two pictures", label)
		}
		if slices.Equal(a, c) {
			t.Errorf("digit %d: two generators gave one picture", label)
		}
	}
}

func TestSetDependsOnSeedAndPlaceAlone(t *testing.T) {
	x, lx := Set(6, 40)
	y, ly := Set(6, 25)
	for i, v := range y {
		if x[i] != v {
			t.Fatalf("element %d differs with the size of the set", i)
		}
	}
	seen := map[int64]int{}
	for i, l := range lx {
		if i < len(ly) && ly[i] != l {
			t.Fatalf("label %d differs with the size of the set", i)
		}
		if l < 0 || l > 9 {
			t.Fatalf("label %d is %d", i, l)
		}
		seen[l]++
	}
	if len(seen) < 8 {
		t.Errorf("40 labels are %v", seen)
	}
}

func TestPicturesAreWithinRangeAndVaried(t *testing.T) {
	for _, size := range []int{32, Size} {
		var sum, sq float64
		const n = 100
		for seed := range uint64(n) {
			for i, v := range drawn(seed, size, int(seed%10)) {
				if !(v >= 0 && v <= 1) {
					t.Fatalf("element %d is %v", i, v)
				}
				sum += float64(v)
				sq += float64(v) * float64(v)
			}
		}
		mean := sum / float64(n*size*size)
		if dev := math.Sqrt(sq/float64(n*size*size) - mean*mean); mean < 0.1 || mean > 0.5 || dev < 0.1 {
			t.Errorf("size %d: mean %v, standard deviation %v", size, mean, dev)
		}
	}
}

// TestEveryGlyphHasInk checks that each font has each sign, about as high as it should be and inside the grid.
func TestEveryGlyphHasInk(t *testing.T) {
	for f, face := range glyphs() {
		for d, g := range face {
			top, low, inside := gridSize, -1, 0
			for i, v := range g {
				if v < 0 {
					top, low = min(top, i/gridSize), max(low, i/gridSize)
					inside++
				}
			}
			high := low - top + 1
			if high < inkHeight*perPixel-4 || high > inkHeight*perPixel+4 || inside < 300 ||
				inside > gridSize*gridSize/3 {
				t.Errorf("%s, %q: %d grid points high, %d inside", faces[f].name, characters[d], high, inside)
			}
		}
	}
}

func TestDistancesAgainstBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	var ink [gridSize * gridSize]bool
	for range 30 {
		ink[rng.IntN(len(ink))] = true
	}
	got := distances(&ink, true)
	for range 500 {
		i := rng.IntN(len(ink))
		best := math.Inf(1)
		for j, v := range ink {
			if v {
				best = min(best, math.Hypot(float64(i%gridSize-j%gridSize), float64(i/gridSize-j/gridSize)))
			}
		}
		if math.Abs(float64(got[i])-best) > 1e-4 {
			t.Fatalf("point %d: %v, want %v", i, got[i], best)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	for _, size := range []int{32, 64, Size} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			c := canvas{size, make([]float32, size*size)}
			glyphs()
			for b.Loop() {
				c.render(rng, []int64{3}, Letters)
			}
		})
	}
}
