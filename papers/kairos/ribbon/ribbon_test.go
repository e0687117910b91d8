package ribbon

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/algo/poolsearch"
)

func tables(t testing.TB) []*Table {
	all, err := Tables()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The tables are complete boxes. Their prices are those of the types, to the cent. The cheapest good pools and their
// savings are the authors'.
func TestTables(t *testing.T) {
	want := map[string]struct {
		pools  int
		best   []int
		price  float64
		saving float64
	}{
		"candle": {1088, []int{6, 0, 2}, 4.36, 11.6},
		"dien":   {846, []int{5, 1, 0}, 2.78, 12.0},
		"mtwnd":  {857, []int{4, 0, 1}, 2.25, 14.4},
		"vgg":    {1689, []int{6, 0, 4}, 5.03, 9.2},
	}
	all := tables(t)
	if len(all) != len(want) {
		t.Fatalf("%d tables, want %d", len(all), len(want))
	}
	for _, tab := range all {
		w := want[tab.Model]
		b := tab.Best()
		// The authors compute percentages from prices to the cent.
		saving := 100 * (1 - tab.Price[b]/(math.Round(100*tab.single)/100))
		if len(tab.Pools) != w.pools || !slices.Equal(tab.Pools[b], w.best) || tab.Price[b] != w.price ||
			math.Abs(saving-w.saving) > 0.05 {
			t.Errorf("%s: %d pools, cheapest good %v for %v $/h, saves %.2f %%, want %+v", tab.Model, len(tab.Pools),
				tab.Pools[b], tab.Price[b], saving, w)
		}
		for i := range tab.Pools {
			if tab.Good(i) && tab.Price[i] < tab.Price[b] {
				t.Errorf("%s: %v is good and cheaper", tab.Model, tab.Pools[i])
			}
			// The pool of all machines scores a little less than 1/2, as its price is rounded up to cents.
			if s := tab.Score(i); tab.Good(i) && s < 0.4997 || !tab.Good(i) && s >= 0.5 {
				t.Errorf("%s: %v has score %v with %v %% in time", tab.Model, tab.Pools[i], tab.Score(i), tab.InTime[i])
			}
		}
		if len(tab.Savings) < 4 || !tab.reaches(b, tab.Savings[len(tab.Savings)-1]) {
			t.Errorf("%s: the best pool does not reach all of %v", tab.Model, tab.Savings)
		}
		space, err := poolsearch.NewSpace(tab.Pools, nil)
		if err != nil {
			t.Fatal(err)
		}
		first, _ := space.Index([]int{1, 0, 0})
		second, _ := space.Index([]int{0, 1, 0})
		third, _ := space.Index([]int{0, 0, 1})
		for i, p := range tab.Pools {
			sum := tab.Price[first]*float64(p[0]) + tab.Price[second]*float64(p[1]) + tab.Price[third]*float64(p[2])
			if math.Abs(sum-tab.Price[i]) > 0.006*float64(1+p[0]+p[1]+p[2]) {
				t.Errorf("%s: %v costs %v, its machines %v", tab.Model, p, tab.Price[i], sum)
			}
		}
	}
}

// Failing pools often contain good ones: the authors' first-come-first-served rule gives queries to slow machines that
// cannot serve them in time. In two tables a failing pool contains the best one, so that pruning can lose it.
func TestMoreCanBeWorse(t *testing.T) {
	want := map[string]int{"candle": 0, "dien": 17, "mtwnd": 0, "vgg": 17}
	for _, tab := range tables(t) {
		best, n := tab.Pools[tab.Best()], 0
		for i, p := range tab.Pools {
			if !tab.Good(i) && p[0] >= best[0] && p[1] >= best[1] && p[2] >= best[2] {
				n++
			}
		}
		if n != want[tab.Model] {
			t.Errorf("%s: %d failing pools contain the best one, want %d", tab.Model, n, want[tab.Model])
		}
	}
}

var studied = flag.Int("seeds", 20, "seeds, from 0 on, with which TestStudy runs every search")

// On Ribbon's own tables its claim holds: under the same pruning its search needs fewer evaluations than random search.
// With pruning every search ends before the limit, because it has found the best pool or lost it.
func TestStudy(t *testing.T) {
	const limit = 200
	seeds := *studied
	for _, tab := range tables(t) {
		for _, pruning := range []Pruning{ByPrice, ByPool} {
			mean := make(map[string]float64)
			for _, search := range Searches {
				r, err := Study(tab, search, pruning, seeds, limit)
				if err != nil {
					t.Fatal(err)
				}
				found, m, median := Summary(r.Best)
				mean[search] = m
				t.Logf("%-6s %-9s %-5s seeds 0..%d: found %d, lost %d, mean %.1f, median %.1f", tab.Model, search,
					pruning, seeds-1, found, r.Lost, m, median)
				if found+r.Lost != seeds {
					t.Errorf("%s, %s, %s: found in %d, lost in %d of %d", tab.Model, search, pruning, found, r.Lost,
						seeds)
				}
				for seed, n := range r.Best {
					for k := range r.Savings {
						reached, before := r.Savings[k][seed], 0
						if k > 0 {
							before = r.Savings[k-1][seed]
						}
						if n > 0 && (reached == 0 || reached > n || reached < before) {
							t.Errorf("%s, %s, %s, seed %d: saving %v after %d evaluations, the one below after %d, "+
								"the best after %d", tab.Model, search, pruning, seed, tab.Savings[k], reached, before,
								n)
						}
					}
					if n > 0 && r.Failing[seed] >= n {
						t.Errorf("%s, %s, %s, seed %d: %d of %d evaluated pools fail, and the last is good", tab.Model,
							search, pruning, seed, r.Failing[seed], n)
					}
				}
			}
			if mean["bayes"] >= mean["random"] {
				t.Errorf("%s, %s: %v evaluations on average, by chance %v", tab.Model, pruning, mean["bayes"],
					mean["random"])
			}
		}
	}
}

// Without pruning, evaluating all pools finds the best one.
func TestWithoutPruning(t *testing.T) {
	const seeds = 3 // 0 to 2
	for _, tab := range tables(t) {
		// The Bayesian model is slow over whole tables. internal/algo/poolsearch tests that its search ends.
		for _, search := range Searches[1:] {
			r, err := Study(tab, search, None, seeds, len(tab.Pools))
			if err != nil {
				t.Fatal(err)
			}
			if found, _, _ := Summary(r.Best); found != seeds || r.Lost > 0 {
				t.Errorf("%s, %s: found in %d, lost in %d of %d", tab.Model, search, found, r.Lost, seeds)
			}
		}
	}
}

func TestSummary(t *testing.T) {
	if found, mean, median := Summary([]int{7, 0, 2, 0, 3, 40}); found != 4 || mean != 13 || median != 5 {
		t.Errorf("found %d, mean %v, median %v, want 4, 13 and 5", found, mean, median)
	}
	if found, mean, median := Summary([]int{0, 0}); found != 0 || mean != 0 || median != 0 {
		t.Errorf("found %d, mean %v, median %v of nothing", found, mean, median)
	}
}

func TestUnknown(t *testing.T) {
	if _, err := Study(tables(t)[0], "guess", None, 1, 1); err == nil || !strings.Contains(err.Error(), "bayes") {
		t.Errorf("error %v, want one that lists the searches", err)
	}
	if _, err := Study(tables(t)[0], "bayes", "guess", 1, 1); err == nil || !strings.Contains(err.Error(), "price") {
		t.Errorf("error %v, want one that lists the prunings", err)
	}
}

// BenchmarkStudy runs one search of each kind on the largest table, to the best pool or 200 evaluations.
func BenchmarkStudy(b *testing.B) {
	all := tables(b)
	largest := all[len(all)-1]
	for _, search := range Searches {
		for _, pruning := range []Pruning{ByPrice, None} {
			b.Run(fmt.Sprintf("%s/%s", search, pruning), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Study(largest, search, pruning, 1, 200); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
