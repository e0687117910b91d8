package scrooge_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/papers/scrooge"
)

// holds checks an allocation by what the paper says of it, path by path, with nothing of the package's arithmetic.
func holds(p *scrooge.Problem, a *scrooge.Allocation) error {
	cost := 0.0
	worst := make([]float64, len(p.Modules)) // seconds
	for i, m := range p.Modules {
		sum := 0.0
		for _, u := range a.Modules[i].Uses {
			x := m.Modes[u.Mode]
			full := float64(x.Batch) * float64(x.Slots) / x.Latency.Seconds()
			if u.Rate > full*(1+1e-9) {
				return fmt.Errorf("module %d: a machine for %v items/s is sent %v", i, full, u.Rate)
			}
			sum += float64(u.Count) * u.Rate
			cost += float64(u.Count) * p.Prices[x.Type] * u.Rate / full
			wait := float64(x.Batch) / u.Rate // Eq. 3
			if x.Batch == 1 {
				wait = 1 / full
			}
			worst[i] = max(worst[i], x.Latency.Seconds()+wait)
		}
		if math.Abs(sum-m.Rate) > 1e-9*m.Rate {
			return fmt.Errorf("module %d: %v items/s are carried, %v arrive", i, sum, m.Rate)
		}
		if worst[i] > a.Modules[i].Budget.Seconds()+2e-9 {
			return fmt.Errorf("module %d: takes %v s, its budget is %v", i, worst[i], a.Modules[i].Budget)
		}
	}
	if math.Abs(cost-a.Cost) > 1e-9*cost {
		return fmt.Errorf("costs %v, says %v", cost, a.Cost)
	}
	// Every path, from every module on: one that begins in the middle is not the longest.
	var walk func(i int, took float64, budgets time.Duration) error
	walk = func(i int, took float64, budgets time.Duration) error {
		if took, budgets = took+worst[i], budgets+a.Modules[i].Budget; took > p.SLO.Seconds()+1e-8 || budgets > p.SLO {
			return fmt.Errorf("a path to module %d takes %v s, its budgets %v, the objective is %v", i, took, budgets,
				p.SLO)
		}
		if a.Modules[i].Arrives+a.Modules[i].Budget < budgets {
			return fmt.Errorf("module %d is left after %v, it says %v", i, budgets,
				a.Modules[i].Arrives+a.Modules[i].Budget)
		}
		for _, n := range p.Modules[i].Next {
			if err := walk(n, took, budgets); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range p.Modules {
		if err := walk(i, 0, 0); err != nil {
			return err
		}
	}
	return nil
}

// More time never costs more, nor does a lower price.
func TestMonotone(t *testing.T) {
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 8))
		p := scrooge.Small(rng)
		cost := func(q scrooge.Problem) float64 {
			a, err := scrooge.Exact(&q)
			if err != nil {
				return math.Inf(1)
			}
			return a.Cost
		}
		base := cost(*p)
		longer := *p
		longer.SLO += time.Duration(rng.Int64N(int64(p.SLO)))
		if c := cost(longer); c > base*(1+1e-9) {
			t.Errorf("seed %d: %v costs %v, %v costs %v", seed, p.SLO, base, longer.SLO, c)
		}
		cheaper := *p
		cheaper.Prices = append([]float64(nil), p.Prices...)
		cheaper.Prices[rng.IntN(len(p.Prices))] *= rng.Float64()
		if c := cost(cheaper); c > base*(1+1e-9) {
			t.Errorf("seed %d: with a lower price it costs %v rather than %v", seed, c, base)
		}
		fewer := p.Only(func(*scrooge.Mode) bool { return rng.IntN(3) > 0 })
		if c := cost(*fewer); c < base*(1-1e-9) {
			t.Errorf("seed %d: with fewer modes it costs %v rather than %v", seed, c, base)
		}
	}
}

// The least possible latency that an error names is possible, and nothing shorter is.
func TestInfeasible(t *testing.T) {
	seen := 0
	for seed := range uint64(300) {
		p := scrooge.Small(rand.New(rand.NewPCG(seed, 9)))
		p.SLO /= 3
		_, err := scrooge.Exact(p)
		var no *scrooge.Infeasible
		if !errors.As(err, &no) {
			continue
		}
		seen++
		if no.Least <= p.SLO || no.SLO != p.SLO || no.Own <= 0 || no.Own > no.Least {
			t.Fatalf("seed %d: %+v for %v", seed, no, p.SLO)
		}
		for _, method := range []func(p *scrooge.Problem) (*scrooge.Allocation, error){
			scrooge.Exact,
			func(p *scrooge.Problem) (*scrooge.Allocation, error) {
				return scrooge.BruteForce(context.Background(), p)
			},
		} {
			p.SLO = no.Least
			a, err := method(p)
			if err != nil {
				t.Errorf("seed %d: %v is said to be possible: %v", seed, no.Least, err)
			} else if err := holds(p, a); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			p.SLO--
			if _, err := method(p); err == nil {
				t.Errorf("seed %d: %v is possible, less than %v", seed, p.SLO, no.Least)
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d problems were infeasible", seen)
	}

	p := example()
	p.SLO = 50 * time.Millisecond
	_, err := scrooge.Exact(p)
	for _, part := range []string{"50ms cannot be kept", "module 0 takes", "raise the objective"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v, want %q in it", err, part)
		}
	}
	p.Modules[1].Modes = nil
	if _, err = scrooge.Exact(p); err == nil || !strings.Contains(err.Error(), "module 1 has no mode") {
		t.Errorf("%v, want that module 1 has no mode", err)
	}
}

// A batch of one waits for nothing, so that the lowest rate can be served.
func TestLowRates(t *testing.T) {
	p := &scrooge.Problem{
		SLO:    100 * time.Millisecond,
		Prices: []float64{1},
		Modules: []scrooge.Module{{Rate: 1e-3, Modes: []scrooge.Mode{
			{Batch: 1, Slots: 1, Latency: 40 * time.Millisecond},
			{Batch: 8, Slots: 1, Latency: 45 * time.Millisecond},
		}}},
	}
	a, err := scrooge.Exact(p)
	if err != nil {
		t.Fatal(err)
	}
	if u := a.Modules[0].Uses; len(u) != 1 || u[0].Mode != 0 || a.Latency != 80*time.Millisecond ||
		math.Abs(a.Cost-1e-3/25) > 1e-15 {
		t.Errorf("%+v", a)
	}
	p.Modules[0].Rate = 0
	if a, err = scrooge.Exact(p); err != nil || a.Cost != 0 || len(a.Modules[0].Uses) != 0 {
		t.Errorf("without load: %+v, %v", a, err)
	}
	if err := a.Verify(p); err != nil {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		spoil func(p *scrooge.Problem)
		says  string
	}{
		{func(p *scrooge.Problem) { p.SLO = 0 }, "SLO is 0s"},
		{func(p *scrooge.Problem) { p.Modules = nil }, "0 modules"},
		{func(p *scrooge.Problem) { p.Prices[1] = 0 }, "price of type 1"},
		{func(p *scrooge.Problem) { p.Prices[1] = math.NaN() }, "price of type 1"},
		{func(p *scrooge.Problem) { p.Prices[1] = math.Inf(1) }, "price of type 1"},
		{func(p *scrooge.Problem) { p.Modules[0].Rate = -1 }, "module 0: rate is -1"},
		{func(p *scrooge.Problem) { p.Modules[0].Rate = math.NaN() }, "module 0: rate is NaN"},
		{func(p *scrooge.Problem) { p.Modules[1].Next = []int{0} }, "module 1: feeds module 0"},
		{func(p *scrooge.Problem) { p.Modules[0].Next = []int{1, 1} }, "module 0: feeds module 1 twice"},
		{func(p *scrooge.Problem) { p.Modules[1].Modes[2].Type = 2 }, "module 1: mode 2 is of type 2"},
		{func(p *scrooge.Problem) { p.Modules[1].Modes[2].Batch = 0 }, "mode 2 has batches of 0"},
		{func(p *scrooge.Problem) { p.Modules[1].Modes[2].Slots = 0 }, "mode 2 runs 0"},
		{func(p *scrooge.Problem) { p.Modules[1].Modes[2].Latency = 0 }, "mode 2 takes 0s"},
	} {
		p := example()
		c.spoil(p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %q", err, c.says)
		}
		if _, err := scrooge.Exact(p); err == nil {
			t.Errorf("Exact takes a problem with %q", c.says)
		}
	}
}

// Verify finds what is wrong with an allocation.
func TestVerify(t *testing.T) {
	for _, c := range []struct {
		spoil func(a *scrooge.Allocation)
		says  string
	}{
		{func(a *scrooge.Allocation) { a.Modules = a.Modules[:1] }, "1 modules"},
		{func(a *scrooge.Allocation) { a.Modules[0].Uses[0].Mode = 9 }, "in mode 9"},
		{func(a *scrooge.Allocation) { a.Modules[0].Uses[0].Rate = 61 }, "it carries"},
		{func(a *scrooge.Allocation) { a.Modules[0].Uses[0].Count = 3 }, "80 arrive"},
		{func(a *scrooge.Allocation) { a.Modules[1].Budget = time.Millisecond }, "its budget is 1ms"},
		{func(a *scrooge.Allocation) { a.Modules[1].Arrives = 0 }, "reached after"},
		{func(a *scrooge.Allocation) { a.Modules[1].Arrives = 250 * time.Millisecond }, "budget ends at"},
		{func(a *scrooge.Allocation) { a.Latency-- }, "longest path"},
		{func(a *scrooge.Allocation) { a.Cost-- }, "it says"},
		{func(a *scrooge.Allocation) { a.Bound++ }, "its bound"},
	} {
		p := example()
		a, err := scrooge.Exact(p)
		if err != nil {
			t.Fatal(err)
		}
		c.spoil(a)
		if err := a.Verify(p); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %q", err, c.says)
		}
	}
}

// BruteForce ends with its context, and refuses problems that are too large.
func TestBruteEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := scrooge.BruteForce(ctx, example()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it is cancelled", err)
	}
	p := scrooge.Many(rand.New(rand.NewPCG(1, 1)), scrooge.Figure1["actdet"], 30)
	for i := range p.Modules {
		p.Modules[i].Rate *= 50
	}
	if _, err := scrooge.BruteForce(context.Background(), p); err == nil ||
		!strings.Contains(err.Error(), "too many to try all") {
		t.Errorf("%v, want that it is too large", err)
	}
}
