package serving

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

// The runs of a padded batch are those of least cost, as trying all of them finds, and hold every item once.
func TestRunsCostLeast(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 5))
		parts := make([]Run, 1+r.IntN(8))
		items := 0
		for k := range parts {
			parts[k] = Run{1 + r.IntN(3), 1 + r.Int32N(1<<(1+r.IntN(8)))}
			items += parts[k].Items
		}
		got := (&Variant{Pads: true}).Runs(append([]Run(nil), parts...))
		sum, cost := 0, int64(0)
		for _, x := range got {
			sum += x.Items
			cost += RunCost + int64(x.Items)*int64(x.Length)
		}
		sorted := (&Variant{}).Runs(append([]Run(nil), parts...))
		best := int64(math.MaxInt64)
		for cut := range 1 << (len(sorted) - 1) { // bit k: a run ends behind part k
			tried, length := int64(0), int64(0)
			for k, p := range sorted {
				if k == 0 || cut&(1<<(k-1)) != 0 {
					tried, length = tried+RunCost, int64(p.Length)
				}
				tried += int64(p.Items) * length
			}
			best = min(best, tried)
		}
		if sum != items || cost != best {
			t.Fatalf("seed %d: %v run as %v: %d items, cost %d; want %d items, cost %d", seed, parts, got, sum, cost,
				items, best)
		}
	}
}

// Without padding every length runs alone; queries of unknown length are one of them.
func TestRunsOfEqualLengths(t *testing.T) {
	got := (&Variant{}).Runs([]Run{{1, 9}, {2, 0}, {1, 30}, {3, 9}, {1, 0}})
	if want := []Run{{1, 30}, {4, 9}, {3, 0}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := (&Variant{Pads: true}).Runs(nil); len(got) != 0 {
		t.Errorf("no queries run as %v", got)
	}
}
