package kairos

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

// Erlang's probability of waiting against its closed forms: rho for one machine, 2 rho^2 / (1 + rho) for two.
func TestErlangC(t *testing.T) {
	for _, rho := range []float64{0.1, 0.5, 0.9, 0.99} {
		if got := erlangC(1, rho); math.Abs(got-rho) > 1e-12 {
			t.Errorf("one machine at %v: %v", rho, got)
		}
		if got, want := erlangC(2, rho), 2*rho*rho/(1+rho); math.Abs(got-want) > 1e-12 {
			t.Errorf("two machines at %v: %v, want %v", rho, got, want)
		}
	}
}

// queueingMarket is a market in which a fast type serves all sizes and a cheap one the smaller of two.
func queueingMarket(rng *rand.Rand) *Market {
	ms := func(from, to float64) time.Duration {
		return time.Duration((from + rng.Float64()*(to-from)) * float64(time.Millisecond))
	}
	share := 0.5 + 0.4*rng.Float64()
	return &Market{
		Within: 100 * time.Millisecond, Mix: serving.Mix{Sizes: []int32{1, 10}, Shares: []float64{share, 1 - share}},
		Types: []Type{
			{Name: "fast", Price: 0.5, Latency: []time.Duration{ms(5, 10), ms(20, 90)}},
			{Name: "cheap", Price: 0.15, Latency: []time.Duration{ms(15, 60), ms(101, 300)}},
		},
	}
}

// The estimate is above 0 and below the program's bound, and a pool twice as large carries more than twice as much:
// queues of many machines are shorter. The pools that Highest finds are those of the whole ranking.
func TestQueueingBelowTheProgram(t *testing.T) {
	for seed := range uint64(60) {
		m := queueingMarket(rand.New(rand.NewPCG(seed, 71)))
		f, err := NewFluid(m, 0.01)
		if err != nil {
			t.Fatal(err)
		}
		q, err := NewQueueing(m, 0.01)
		if err != nil {
			t.Fatal(err)
		}
		pools, err := m.Pools(3)
		if err != nil {
			t.Fatal(err)
		}
		var all []Estimated
		for _, r := range Rank(m, f, pools) {
			e := Estimated{r, q.Of(r.Pool)}
			if !(e.Rate <= r.Bound) || e.Rate <= 0 && r.Bound > 0 {
				t.Fatalf("seed %d: %v is estimated at %v, its bound is %v", seed, r.Pool, e.Rate, r.Bound)
			}
			if twice := q.Of(Pool{2 * r.Pool[0], 2 * r.Pool[1]}); twice < 2*e.Rate*(1-1e-3) {
				t.Fatalf("seed %d: %v is estimated at %v, twice as many machines at %v", seed, r.Pool, e.Rate, twice)
			}
			all = append(all, e)
		}
		slices.SortStableFunc(all, func(a, b Estimated) int { return cmp.Compare(b.Rate, a.Rate) })
		for i, e := range q.Highest(Rank(m, f, pools), 5) {
			if math.Abs(e.Rate-all[i].Rate) > 1e-6*all[i].Rate {
				t.Fatalf("seed %d: number %d is %v at %v, want %v at %v", seed, i, e.Pool, e.Rate, all[i].Pool,
					all[i].Rate)
			}
		}
	}
}

// Where the large queries fill a lone base machine the program has the pool first; the estimate does not.
func TestQueueingKnowsTheLoneBaseMachine(t *testing.T) {
	m := &Market{
		Within: 100 * time.Millisecond, Mix: serving.Mix{Sizes: []int32{1, 10}, Shares: []float64{0.8, 0.2}},
		Types: []Type{
			{Name: "base", Price: 0.5, Latency: []time.Duration{20 * time.Millisecond, 60 * time.Millisecond}},
			{Name: "cheap", Price: 0.15, Latency: []time.Duration{50 * time.Millisecond, 200 * time.Millisecond}},
		},
	}
	lone, two := Pool{1, 3}, Pool{2, 0}
	f, err := NewFluid(m, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	q, err := NewQueueing(m, 0.01)
	if err != nil {
		t.Fatal(err)
	}
	if !(f.Of(lone) > f.Of(two)) || !(q.Of(lone) < q.Of(two)) {
		t.Errorf("one base machine: bound %v, estimate %v; two: %v and %v", f.Of(lone), q.Of(lone), f.Of(two),
			q.Of(two))
	}
}

// The planner asks its port for the best of the pools with the highest estimates, as many as its option says, and takes
// the answer. Without the port, and with other ways to choose, nothing is tried.
func TestTrials(t *testing.T) {
	spec, known := testSpec(1, 12)
	r := plan.Request{Spec: spec, Rates: []float64{10}}
	for _, c := range []struct {
		name    string
		options Options
		asked   int // pools
	}{
		{"by default", Options{Queueing: true}, DefaultTrials}, {"three", Options{Queueing: true, Trials: 3}, 3},
		{"none", Options{Queueing: true, Trials: -1}, 0}, {"the program alone", Options{Fluid: true}, 0},
		{"the paper's", Options{}, 0},
	} {
		c.options.Budget = 2.5
		asked, chosen := 0, Pool(nil)
		p := &Planner{Profile: known, Options: c.options, Trial: func(_ context.Context, x Contest) (int, error) {
			asked = len(x.Pools)
			for i := 1; i < asked; i++ {
				if x.Pools[i].Rate > x.Pools[i-1].Rate*(1+1e-6) {
					t.Errorf("%s: pools are not in the order of their estimates", c.name)
				}
			}
			chosen = x.Pools[asked-1].Pool
			return asked - 1, nil
		}}
		out := must(t, p, r)
		if asked != c.asked || asked > 0 && !slices.Equal(counts(spec, out, 0), chosen) {
			t.Errorf("%s: %d pools are tried, want %d; %v is rented, %v was best", c.name, asked, c.asked,
				counts(spec, out, 0), chosen)
		}
	}
	broken := errors.New("broken")
	p := &Planner{Profile: known, Options: Options{Budget: 2.5, Queueing: true},
		Trial: func(context.Context, Contest) (int, error) { return 0, broken }}
	if _, err := p.Plan(t.Context(), r); !errors.Is(err, broken) {
		t.Errorf("a trial that fails: %v", err)
	}
}
