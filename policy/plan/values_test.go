package plan

import (
	"math"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

func prices() *ValueFunctions {
	at := func(rate float64) ValueFunction {
		return ValueFunction{
			Rate: rate, Residual: time.Millisecond, Value: []float64{3, 2, 0, -4}, Zero: 1, PerQuery: 0.5,
		}
	}
	return &ValueFunctions{Workers: 1, ByRate: []ValueFunction{at(10), at(20), at(40)}}
}

// Entries are two queries apart: positions -2, 0, 2 and 4.
func TestPriceAt(t *testing.T) {
	x := &prices().ByRate[0]
	for _, c := range []struct{ position, want float64 }{
		{-9, 3}, {-2, 3}, {-1, 2.5}, {0, 2}, {1, 1}, {2, 0}, {3, -2}, {4, -4}, {5, -6}, {8, -12},
	} {
		if got := x.At(c.position); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("position %v is worth %v, want %v", c.position, got, c.want)
		}
	}
}

func TestPricesBetween(t *testing.T) {
	p := prices()
	for _, c := range []struct{ rate, low, high, part float64 }{
		{1, 10, 10, 0}, {10, 10, 10, 0}, {15, 10, 20, 0.5}, {20, 10, 20, 1}, {25, 20, 40, 0.25}, {41, 40, 40, 0},
		{math.Inf(1), 40, 40, 0},
	} {
		low, high, part := p.Between(c.rate)
		if low.Rate != c.low || high.Rate != c.high || math.Abs(part-c.part) > 1e-12 {
			t.Errorf("%v/s: %v of the way from %v to %v, want %v from %v to %v", c.rate, part, low.Rate, high.Rate,
				c.part, c.low, c.high)
		}
	}
}

func TestPricesValidate(t *testing.T) {
	spec := &serving.Spec{Stages: []serving.Stage{{}}}
	if err := (&Plan{Values: []ValueFunctions{*prices()}}).Validate(spec); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(p *ValueFunctions){
		"a stage":           func(p *ValueFunctions) { p.Stage = 1 },
		"no workers":        func(p *ValueFunctions) { p.Workers = 0 },
		"no rates":          func(p *ValueFunctions) { p.ByRate = nil },
		"rates that fall":   func(p *ValueFunctions) { p.ByRate[1].Rate = 10 },
		"one value":         func(p *ValueFunctions) { p.ByRate[0].Value = p.ByRate[0].Value[:1] },
		"zero outside":      func(p *ValueFunctions) { p.ByRate[2].Zero = 4 },
		"no distance":       func(p *ValueFunctions) { p.ByRate[2].PerQuery = 0 },
		"no time left":      func(p *ValueFunctions) { p.ByRate[2].Residual = 0 },
		"a value of no use": func(p *ValueFunctions) { p.ByRate[1].Value[2] = math.NaN() },
	} {
		p := prices()
		spoil(p)
		if (&Plan{Values: []ValueFunctions{*p}}).Validate(spec) == nil {
			t.Errorf("%s: not found", name)
		}
	}
}
