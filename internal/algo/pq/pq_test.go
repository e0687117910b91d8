package pq

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The heap against a plain scan over all keys, through random operations with many ties.
func TestAgainstScan(t *testing.T) {
	for seed := uint64(1); seed <= 50; seed++ {
		rng := rand.New(rand.NewPCG(seed, 0))
		var h Heap
		keys := map[int]int64{}
		for op := 0; op < 2000; op++ {
			i := rng.IntN(40)
			switch rng.IntN(5) {
			case 0:
				h.Remove(i)
				delete(keys, i)
			default:
				k := int64(rng.IntN(25))
				h.Set(i, k)
				keys[i] = k
			}
			if rng.IntN(300) == 0 {
				h.Reset()
				clear(keys)
			}
			best, found := -1, false
			for j, k := range keys {
				if !found || k < keys[best] || k == keys[best] && j < best {
					best, found = j, true
				}
			}
			got, key, ok := h.Min()
			if ok != found || found && (got != best || key != keys[best]) || h.Len() != len(keys) {
				t.Fatalf("seed %d op %d: Min = %d, %d, %v; a scan says %d, %d, %v", seed, op, got, key, ok, best,
					keys[best], found)
			}
			if k, ok := h.Key(i); ok != (func() bool { _, in := keys[i]; return in })() || ok && k != keys[i] {
				t.Fatalf("seed %d op %d: Key(%d) = %d, %v", seed, op, i, k, ok)
			}
		}
	}
}

func BenchmarkSet(b *testing.B) {
	var h Heap
	for i := range 2000 {
		h.Set(i, int64(i))
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		h.Set(n%2000, int64(n*7919%100003))
	}
}

// The smallest keys against sorting all.
func TestAppendSmallest(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 0))
	for range 200 {
		var h Heap
		var keys []int64
		for i := range rng.IntN(50) {
			keys = append(keys, int64(rng.IntN(30)))
			h.Set(i, keys[i])
		}
		slices.Sort(keys)
		n := rng.IntN(40)
		if got := h.AppendSmallest(nil, n); !slices.Equal(got, keys[:min(n, len(keys))]) {
			t.Fatalf("%d of %v: %v", n, keys, got)
		}
	}
}
