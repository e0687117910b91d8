package kairos

import (
	"encoding/csv"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// The inputs of the authors' allocator through Eq. 15: the pools with the highest bounds, and what the best homogeneous
// pool would serve.
func TestUpperOfTheAuthorsInputs(t *testing.T) {
	m := ec2()
	pools, err := m.Pools(2.5)
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]struct {
		pool        Pool
		bound       float64
		homogeneous float64
	}{
		"rm2":   {Pool{1, 0, 13, 0}, 144.2, 60.2},
		"ncf":   {Pool{1, 0, 13, 0}, 7180.6, 3445.3},
		"wnd":   {Pool{1, 0, 13, 0}, 1555.9, 984.7},
		"dien":  {Pool{2, 0, 9, 0}, 733.0, 422.2},
		"mtwnd": {Pool{2, 0, 9, 0}, 1061.3, 669.4},
	} {
		u := published(t, m, model)
		best := Rank(m, u, pools)[0]
		if !slices.Equal(best.Pool, want.pool) || math.Abs(best.Bound-want.bound) > 0.05 {
			t.Errorf("%s: %v has the highest bound, %.1f; want %v, %.1f", model, best.Pool, best.Bound, want.pool,
				want.bound)
		}
		if alone := u.Of(Pool{4, 0, 0, 0}); math.Abs(alone-want.homogeneous) > 0.06 {
			t.Errorf("%s: four base machines serve %.2f, want %.1f", model, alone, want.homogeneous)
		}
	}
}

// published is the bound from testdata/allocator.csv.
func published(t *testing.T, m *Market, model string) *Upper {
	f, err := os.Open("testdata/allocator.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	types := len(m.Types)
	at := func(name string) int { return slices.IndexFunc(m.Types, func(x Type) bool { return x.Name == name }) }
	number := func(s string) float64 {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	// Region 0 is that of no auxiliary type, region 1 + i that of the i-th smallest.
	late, small, time, base := make([]float64, types), make([]float64, types), make([]float64, types), 0.0
	for _, row := range rows[1:] {
		switch i := at(row[1]); {
		case row[0] != model:
		case i == 0:
			base = number(row[6])
		default:
			late[i], small[i], time[i] = number(row[2]), number(row[3]), number(row[4])
		}
	}
	sizes := slices.Sorted(slices.Values(late))
	u := &Upper{base: make([]bool, types), region: make([]int, types), regions: make([]regionRates, types)}
	u.base[0] = true
	for i := range types {
		u.region[i] = slices.Index(sizes, late[i])
		x := &u.regions[u.region[i]]
		x.smallShare, x.baseAll = small[i], make([]float64, types)
		x.baseLarge, x.auxiliarySmall = make([]float64, types), make([]float64, types)
		x.baseAll[0], x.baseLarge[0] = base, base*(1-small[i])/(1-time[i])
	}
	for _, row := range rows[1:] {
		if row[0] == model && row[5] != "all" {
			u.regions[u.region[at(row[5])]].auxiliarySmall[at(row[1])] = number(row[6])
		}
	}
	return u
}

// The two scenarios of Figure 7 with one base and one auxiliary machine, sizes up to 500 and beyond: in the first the
// base machine has no time left beside the large queries, in the second it has. Worked by hand.
func TestUpperScenarios(t *testing.T) {
	at := time.Millisecond
	m := &Market{Mix: serving.Mix{
		Sizes: []int32{400, 800}, Shares: []float64{0.6, 0.4},
	}, Within: 100 * at, Types: []Type{
		{Name: "base", Latency: []time.Duration{20 * at, 50 * at}}, {
			Name: "auxiliary", Latency: []time.Duration{25 * at, 200 * at},
		},
	}}
	u := NewUpper(m)
	// Q_b = 1/(0.6*20+0.4*50 ms) = 31.25, Q_b^{s+} = 20, Q_a = 40, f = 0.6.
	for _, c := range []struct {
		pool Pool
		want float64
	}{
		{Pool{1, 1}, 50},     // 20 <= 40*0.4/0.6: 20/0.4
		{Pool{2, 1}, 87.5},   // 40 > 26.67: 40/0.6 + (40-26.67)/40*62.5
		{Pool{2, 0}, 62.5},   // no auxiliary machine
		{Pool{0, 5}, 0},      // no machine serves the large ones
		{Pool{1, 9}, 50},     // more auxiliary machines do not help
		{Pool{3, 1}, 118.75}, // 60 > 26.67: 66.67 + 33.33/60*93.75
		{Pool{3, 2}, 143.75}, // 60 > 53.33: 133.33 + 6.67/60*93.75
		{Pool{0, 0}, 0},
		{Pool{4, 2}, 2 * 87.5},      // twice (2, 1)
		{Pool{30, 10}, 10 * 118.75}, // ten times (3, 1)
	} {
		if got := u.Of(c.pool); math.Abs(got-c.want) > 1e-9*c.want {
			t.Errorf("%v: %v, want %v", c.pool, got, c.want)
		}
	}
}

// Eq. 15 as it stands, computed for one pool at a time, and with several base types.
func TestUpperAgainstTheFormula(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		m := someMarket(rng, 1+rng.IntN(5), 2+rng.IntN(10))
		if rng.IntN(2) == 0 {
			m.Types = append(m.Types, m.Types[0])
		}
		u := NewUpper(m)
		for range 20 {
			p := somePool(rng, len(m.Types), 4)
			if got, want := u.Of(p), formula(m, p); math.Abs(got-want) > 1e-9*want {
				t.Fatalf("seed %d, pool %v: %v, the formula says %v", seed, p, got, want)
			}
		}
	}
}

func formula(m *Market, p Pool) float64 {
	r := 0
	for t, n := range p {
		if n > 0 && !m.IsBase(t) {
			r = max(r, m.Region(t))
		}
	}
	rate := func(t, from, to int) (queries, perSecond float64) {
		seconds := 0.0
		for c := from; c < to; c++ {
			_, share := m.Mix.Class(c)
			queries += share
			seconds += share * m.Types[t].Latency[c].Seconds()
		}
		return queries, queries / seconds
	}
	var all, large, few, f float64
	for t, n := range p {
		if m.IsBase(t) {
			_, q := rate(t, 0, m.Mix.Classes())
			all += float64(n) * q
			_, q = rate(t, r, m.Mix.Classes())
			large += float64(n) * q
		} else if r > 0 && n > 0 {
			var q float64
			f, q = rate(t, 0, r)
			few += float64(n) * q
		}
	}
	if few == 0 || all == 0 {
		return all
	}
	c := few * (1 - f) / f
	if large <= c {
		return large / (1 - f)
	}
	return few/f + (large-c)/large*all
}

func BenchmarkRankUpper(b *testing.B) {
	m, pools := thousand()
	b.ReportAllocs()
	for b.Loop() {
		Rank(m, NewUpper(m), pools)
	}
}

// thousand is a market of 4 types and 100 sizes, and a search space of 1080 pools.
func thousand() (*Market, []Pool) {
	m := someMarket(rand.New(rand.NewPCG(7, 1)), 4, 100)
	var pools []Pool
	for n := range 5 * 6 * 6 * 6 {
		pools = append(pools, Pool{n / 216, n / 36 % 6, n / 6 % 6, n % 6})
	}
	return m, pools
}
