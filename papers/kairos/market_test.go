package kairos

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// someMarket draws a market. The first type serves nearly every size in time, the latencies of the others grow at
// random, and the runs of every third scatter.
func someMarket(rng *rand.Rand, types, classes int) *Market {
	m := &Market{Within: 100 * time.Millisecond}
	counts := make(map[int32]int)
	for len(counts) < classes {
		counts[int32(1+rng.IntN(1000))] = 1 + rng.IntN(50)
	}
	m.Mix = serving.CountMix(counts)
	for t := range types {
		x := Type{Name: string(rune('a' + t)), Price: 0.1 + rng.Float64()}
		base, slope, noise := 20*rng.Float64(), 0.3*rng.Float64(), 0.2*rng.Float64()
		if t == 0 {
			base, slope, noise = 20, 0.07, 0.05
		}
		for c := range classes {
			items, _ := m.Mix.Class(c)
			took := (base + slope*float64(items)) * (1 + noise*(rng.Float64()-0.5)) * float64(time.Millisecond)
			x.Latency = append(x.Latency, time.Duration(took)+time.Microsecond)
			if t%3 == 2 {
				x.InTime = append(x.InTime, rng.Float64())
			}
		}
		m.Types = append(m.Types, x)
	}
	return m
}

func somePool(rng *rand.Rand, types, most int) Pool {
	p := make(Pool, types)
	for t := range p {
		p[t] = rng.IntN(most + 1)
	}
	return p
}

// ec2 is the market of the paper's evaluation (§7) but for latencies, of which only the first type's are all in time.
func ec2() *Market {
	m := &Market{Mix: serving.Mix{Sizes: []int32{10, 1000}, Shares: []float64{0.9, 0.1}}, Within: time.Second}
	for i, price := range []float64{0.526, 0.432, 0.149, 0.1664} {
		large := 2 * time.Second
		if i == 0 {
			large = time.Second
		}
		m.Types = append(m.Types, Type{Name: []string{
			"g4dn.xlarge", "c5n.2xlarge", "r5n.large", "t3.xlarge",
		}[i], Price: price, Max: []int{5, 6, 17, 15}[i],
			Latency: []time.Duration{time.Millisecond, large}})
	}
	return m
}

func TestPoolsOfThePaper(t *testing.T) {
	pools, err := ec2().Pools(2.5)
	if err != nil {
		t.Fatal(err)
	}
	with := 0
	for _, p := range pools {
		if p[0] > 0 {
			with++
		}
	}
	if with != 331 {
		t.Errorf("%d pools with a base machine cost at most 2.5 $/h, the authors' allocator lists 331", with)
	}
	if !slices.IsSortedFunc(pools, slices.Compare[Pool]) {
		t.Error("the pools are not in order")
	}
}

// Pools against counting in whole cents, where sums are exact.
func TestPoolsAgainstAll(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := someMarket(rng, 1+rng.IntN(3), 3)
		cents := make([]int, len(m.Types))
		for i := range m.Types {
			cents[i] = 5 + rng.IntN(100)
			m.Types[i].Price, m.Types[i].Max = float64(cents[i])/100, rng.IntN(6)
		}
		budget := 1 + rng.IntN(300)
		want := make(map[string]bool)
		var try func(p Pool, left int)
		try = func(p Pool, left int) {
			if len(p) == len(cents) {
				if p.Machines() > 0 {
					want[key(p)] = true
				}
				return
			}
			i := len(p)
			for n := 0; n*cents[i] <= left &&
				(n == 0 || m.Useful(i) && (m.Types[i].Max == 0 || n <= m.Types[i].Max)); n++ {
				try(append(slices.Clone(p), n), left-n*cents[i])
			}
		}
		try(nil, budget)
		pools, err := m.Pools(float64(budget) / 100)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, p := range pools {
			if !want[key(p)] {
				t.Fatalf("seed %d: %v costs %v of %v", seed, p, m.Cost(p), float64(budget)/100)
			}
			delete(want, key(p))
		}
		if len(want) > 0 {
			t.Fatalf("seed %d: %v are missing", seed, want)
		}
	}
}

func key(p Pool) string {
	var b strings.Builder
	for _, n := range p {
		b.WriteByte(byte('0' + n))
	}
	return b.String()
}

func TestPoolsRefused(t *testing.T) {
	m := ec2()
	for want, budget := range map[string]float64{"the budget is NaN": math.NaN(), "the budget is -1": -1} {
		if _, err := m.Pools(budget); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("budget %v: %v", budget, err)
		}
	}
	if _, err := m.Pools(0); err != nil {
		t.Errorf("no budget, but limits: %v", err)
	}
	m.Types[2].Max = 0
	if _, err := m.Pools(0); !errors.Is(err, ErrUnbounded) {
		t.Errorf("neither budget nor limit: %v", err)
	}
	if _, err := m.Pools(1e6); err == nil || !strings.Contains(err.Error(), "lower the budget") {
		t.Errorf("a million $/h: %v", err)
	}
}

func TestRegionsAndBases(t *testing.T) {
	m := ec2()
	m.Mix = serving.Mix{Sizes: []int32{1, 2, 3}, Shares: []float64{0.2, 0.3, 0.5}}
	at := func(ms ...int) (out []time.Duration) {
		for _, x := range ms {
			out = append(out, time.Duration(x)*time.Millisecond)
		}
		return out
	}
	m.Types = []Type{
		{Latency: at(1, 2, 1000)}, {Latency: at(1, 1001, 1000)}, {Latency: at(1001, 1002, 1003)}, {
			Latency: at(2000, 2000, 2000), InTime: []float64{0, 0, 0.1},
		},
	}
	for i, want := range []struct {
		region       int
		base, useful bool
	}{{3, true, true}, {1, false, true}, {0, false, false}, {0, false, true}} {
		if m.Region(i) != want.region || m.IsBase(i) != want.base || m.Useful(i) != want.useful {
			t.Errorf("type %d: region %d, base %v, useful %v; want %v", i, m.Region(i), m.IsBase(i), m.Useful(i), want)
		}
	}
	if !(Pool{1, 0, 2}).SubsetOf(Pool{1, 1, 2}) || (Pool{1, 2}).SubsetOf(Pool{3, 1}) {
		t.Error("a sub-configuration has at most as many machines of each type")
	}
}

func TestMarketOfSpec(t *testing.T) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "x", PricePerHour: 1, MaxMachines: 3}, {Name: "y", PricePerHour: 2}},
	}
	mix := serving.Mix{Sizes: []int32{1, 5}, Shares: []float64{0.5, 0.5}}
	m, err := NewMarket(profile.Constant{Base: 3, PerItem: 2}, spec, 0, &mix, nil, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if x := m.Types[0]; x.Price != 1 || x.Max != 3 || x.Latency[0] != 5 || x.Latency[1] != 13 ||
		m.Types[1].Device != 1 {
		t.Errorf("%+v", m.Types)
	}
	if m, err = NewMarket(profile.Constant{Base: 3}, spec, 0, &mix, []float64{7, 8}, time.Second); err != nil ||
		m.Types[1].Price != 8 {
		t.Errorf("prices that are given: %+v, %v", m.Types, err)
	}
	if _, err = NewMarket(profile.Constant{}, spec, 0, &mix, nil, time.Second); err == nil ||
		!strings.Contains(err.Error(), `"x" takes 0s for 1 items`) {
		t.Errorf("a latency of 0: %v", err)
	}
	if _, err = NewMarket(profile.Constant{Base: 1}, spec, 0, &mix, nil, 0); err == nil {
		t.Error("no time to serve anything was taken")
	}
}

// Without a base type the error names the size that is not served. The queries that can be served are planned for.
func TestServable(t *testing.T) {
	m := ec2()
	if err := m.ExplainNoBase(); err != nil {
		t.Error(err)
	}
	if cut, without := m.Servable(false, 0); cut != m || without != 0 {
		t.Error("a market with a base type was cut")
	}
	m.Types = m.Types[1:]
	m.Types[2].Latency = []time.Duration{time.Millisecond, 1500 * time.Millisecond}
	err := m.ExplainNoBase()
	if !errors.Is(err, ErrTooSlow) ||
		!strings.Contains(err.Error(),
			`1000 items take 1.5s on the fastest, "t3.xlarge", and the objective leaves 1s`) {
		t.Error(err)
	}
	for _, fluid := range []bool{false, true} {
		cut, without := m.Servable(fluid, 0.01)
		if math.Abs(without-0.1) > 1e-12 || cut.Mix.Classes() != 1 || cut.Mix.Validate() != nil ||
			len(cut.Types[0].Latency) != 1 || !cut.IsBase(0) {
			t.Errorf("fluid %v: left %+v, without %v", fluid, cut, without)
		}
	}
	if cut, without := m.Servable(true, 0.1); cut != m || without != 0 {
		t.Error("what may be late needs no cut")
	}
	m.Within = time.Microsecond
	if cut, without := m.Servable(true, 0.1); cut != nil || without != 1 {
		t.Error("nothing can be served in time")
	}
}

// Parts of machines are not rented.
func TestMarketWithoutParts(t *testing.T) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{
			{Name: "half", Part: true, Cores: 2}, {Name: "machine", PricePerHour: 2, Cores: 4},
		},
		Variants: []serving.Variant{{MaxBatch: 4}},
	}
	m, err := NewMarket(profile.Constant{Base: 3}, spec, 0, &serving.Mix{}, nil, time.Second)
	if err != nil || len(m.Types) != 1 || m.Types[0].Device != 1 {
		t.Errorf("%v: %+v", err, m)
	}
}
