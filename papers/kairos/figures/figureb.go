package kairos

import (
	"fmt"
	"math"
	"slices"

	planner "github.com/sluice-serving/sluice/papers/kairos"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// sampledPools is about how many pools Figure B measures besides those with the highest bounds. They are spread evenly
// over the ranking.
const sampledPools = 20

// boundComparison holds both bounds of all pools under the budget.
type boundComparison struct {
	pools     []pool // by falling upper bound of the paper
	upper     []float64
	fluid     []float64
	oracle    *oraclePools
	simulated []int              // indices into pools
	rates     []reproduce.Values // of the simulated
}

// figureB compares the paper's bound with our linear program: how far they lie apart, which of them simulation and the
// oracle exceed, and whose highest pools are the best.
func figureB(run *runner, f *reproduce.Sheet) error {
	chart := f.Chart("B", "Kairos, Figure B: both bounds, all pools by the upper bound", 2)
	for _, m := range models {
		x, err := run.compareBounds(m.name)
		if err != nil {
			return err
		}
		at := f.At("model", m.name, "arrivals", wholeMillis)
		x.addBoundRatios(at)
		x.addBoundQuality(at, "upper bound", x.upper)
		x.addBoundQuality(at, "linear program", x.fluid)
		x.draw(chart.Panel(m.name+": queries/s", "by upper bound", 0, reproduce.Auto))
	}
	return nil
}

func (run *runner) compareBounds(model string) (*boundComparison, error) {
	s, err := run.deployment(paperSetup(model))
	if err != nil {
		return nil, err
	}
	f, err := s.fluid()
	if err != nil {
		return nil, err
	}
	ranked, err := s.ranked(planner.NewUpper(s.market), budget)
	if err != nil {
		return nil, err
	}
	x := &boundComparison{}
	if x.oracle, err = s.oracle(); err != nil {
		return nil, err
	}
	for _, r := range ranked {
		x.pools, x.upper, x.fluid = append(x.pools, pool(r.Pool)), append(x.upper, r.Bound),
			append(x.fluid, f.Of(r.Pool))
	}
	every := max(len(x.pools)/sampledPools, 1)
	second := ranks(x.fluid)
	for i := range x.pools {
		if i < topCount || second[i] <= topCount || i%every == 0 {
			x.simulated = append(x.simulated, i)
			x.rates = append(x.rates, run.throughput(trial{
				setup: paperSetup(model), pool: x.pools[i], system: kairosRule, arrivals: wholeMillis,
			}, run.coarse).rates())
		}
	}
	return x, nil
}

// ranks returns the rank of every number from the highest down, 1 for the first. Equal numbers share a rank.
func ranks(v []float64) []int {
	out := make([]int, len(v))
	for i, a := range v {
		out[i] = 1
		for _, b := range v {
			if b > a {
				out[i]++
			}
		}
	}
	return out
}

// addBoundRatios adds how far the two bounds lie apart.
func (x *boundComparison) addBoundRatios(at reproduce.Place) {
	least, most, above := 0, 0, 0
	part := make([]float64, len(x.pools))
	for i := range x.pools {
		if part[i] = x.upper[i] / x.fluid[i]; part[i] < part[least] {
			least = i
		}
		if part[i] > part[most] {
			most = i
		}
		if part[i] > 1 {
			above++
		}
	}
	const quantity = "upper bound over linear program"
	at.Row(fmt.Sprintf("least, %v", x.pools[least]), quantity, "x", reproduce.Const(part[least]))
	at.Row(fmt.Sprintf("most, %v", x.pools[most]), quantity, "x", reproduce.Const(part[most]))
	at.Row("all", "pools", "", reproduce.Const(float64(len(x.pools))))
	at.Row("all", "upper bound above the linear program", "pools", reproduce.Const(float64(above)))
	at.Row("all", "measured", "pools", reproduce.Const(float64(len(x.simulated))))
}

// addBoundQuality adds how well a bound, given by pool, ranks the measured pools, and whether Kairos and the oracle
// exceed it.
func (x *boundComparison) addBoundQuality(at reproduce.Place, name string, bounds []float64) {
	place := ranks(bounds)
	oracleMost, oracleAbove := 0.0, 0
	for i, p := range x.pools {
		v := x.oracle.rates[p] / bounds[i]
		oracleMost = max(oracleMost, v)
		if v > 1 {
			oracleAbove++
		}
	}
	first := slices.Index(place, 1)
	add := func(quantity, unit string, of func(rate []float64, best int) float64) {
		at.Row(name, quantity, unit, ofPools(x.rates, of))
	}
	add("place of the best", "", func(_ []float64, best int) float64 { return float64(place[x.simulated[best]]) })
	add("its first below the best", "%", func(rate []float64, best int) float64 {
		of := 0.0 // the rate of the pool with the highest bound
		if k := slices.Index(x.simulated, first); k >= 0 {
			of = rate[k]
		}
		return 100 * (1 - of/rate[best])
	})
	add("most reached by kairos", "x", func(rate []float64, _ int) (most float64) {
		for k, i := range x.simulated {
			most = max(most, rate[k]/bounds[i])
		}
		return most
	})
	add("passed by kairos", "pools", func(rate []float64, _ int) (n float64) {
		for k, i := range x.simulated {
			if rate[k] > bounds[i] {
				n++
			}
		}
		return n
	})
	at.Row(name, "most reached by the oracle", "x", reproduce.Const(oracleMost))
	at.Row(name, "passed by the oracle", "pools", reproduce.Const(float64(oracleAbove)))
}

// draw draws bounds, oracle and measured throughputs by rank of the upper bound.
func (x *boundComparison) draw(p *reproduce.Panel) {
	p.Faint("oracle")
	for i, pool := range x.pools {
		place := float64(i + 1)
		p.Point("oracle", place, reproduce.Const(x.oracle.rates[pool]))
		p.Point("linear program", place, reproduce.Const(x.fluid[i]))
		p.Point("upper bound", place, reproduce.Const(x.upper[i]))
	}
	for k, i := range x.simulated { // points: a gap follows each
		p.Point("kairos", float64(i+1), x.rates[k])
		p.Point("kairos", float64(i)+1.5, reproduce.Const(math.NaN()))
	}
}
