package kairos

import (
	"fmt"
	"math"
	"slices"

	planner "github.com/sluice-serving/sluice/papers/kairos"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// topCount is how many pools Figures 13 and 14 show.
const topCount = 20

// topPools are the pools with the highest upper bounds, in falling order.
type topPools struct {
	ranked []planner.Ranked
	fluid  []float64 // bound of our linear program, by pool
	chosen int
}

func (s *deployment) topPools() (*topPools, error) {
	ranked, err := s.ranked(planner.NewUpper(s.market), budget)
	if err != nil {
		return nil, err
	}
	f, err := s.fluid()
	if err != nil {
		return nil, err
	}
	out := &topPools{ranked: ranked[:min(topCount, len(ranked))], chosen: planner.ChooseBySimilarity(s.market, ranked)}
	for _, r := range out.ranked {
		out.fluid = append(out.fluid, f.Of(r.Pool))
	}
	return out, nil
}

// figure13 measures the pools with the highest bounds under Kairos's rule, for every model (§8.5).
func figure13(run *runner, f *reproduce.Sheet) error {
	chart := f.Chart("13", "Kairos, Figure 13: pools with the highest bounds, and what they carry", 2)
	for _, m := range models {
		s, err := run.deployment(paperSetup(m.name))
		if err != nil {
			return err
		}
		x, err := s.topPools()
		if err != nil {
			return err
		}
		at := f.At("model", m.name, "arrivals", wholeMillis)
		p := chart.Panel(m.name+": queries/s", "by upper bound", 0, reproduce.Auto).Faint("upper bound")
		rates := make([]reproduce.Values, len(x.ranked))
		for i, r := range x.ranked {
			system, place := fmt.Sprintf("%d. %v", i+1, pool(r.Pool)), float64(i+1)
			tr := trial{setup: s.setup, pool: pool(r.Pool), system: kairosRule, arrivals: wholeMillis}
			rates[i] = run.throughput(tr, run.coarse).rates()
			upper, fluid, star := reproduce.Const(r.Bound), reproduce.Const(x.fluid[i]), reproduce.Const(math.NaN())
			if i == x.chosen {
				star = rates[i]
			}
			at.Row(system, throughputRow, "queries/s", rates[i])
			at.Row(system, "upper bound", "queries/s", upper)
			at.Row(system, "linear program", "queries/s", fluid)
			p.Point("upper bound", place, upper)
			p.Point("linear program", place, fluid)
			p.Point("kairos", place, rates[i])
			p.Point("chosen", place, star)
		}
		x.addSummary(f.At("model", m.name, "arrivals", wholeMillis, "of the pools", "all above"), rates)
	}
	return nil
}

// addSummary adds the rank of the best pool by either bound, and by how much the chosen pool is below the best.
func (x *topPools) addSummary(at reproduce.Place, rates []reproduce.Values) {
	program := 0
	for i := range x.fluid {
		if x.fluid[i] > x.fluid[program] {
			program = i
		}
	}
	add := func(quantity, unit string, of func(rate []float64, best int) float64) *reproduce.Entry {
		return at.Row(kairosRule, quantity, unit, ofPools(rates, of))
	}
	below := func(pool int) func(rate []float64, best int) float64 {
		return func(rate []float64, best int) float64 { return 100 * (1 - rate[pool]/rate[best]) }
	}
	add("place of the best", "", func(_ []float64, best int) float64 { return float64(best + 1) }).
		Published(10, "§8.5, at most")
	add("its place by the linear program", "", func(_ []float64, best int) float64 {
		return float64(ranks(x.fluid)[best])
	})
	add("place of the chosen", "", func([]float64, int) float64 { return float64(x.chosen + 1) })
	add("chosen below the best", "%", below(x.chosen))
	add("highest bound below the best", "%", below(0))
	add("linear program's first below the best", "%", below(program))
	add("most of the linear program", "x", func(rate []float64, _ int) float64 {
		return slices.Max(reproduce.Const(rate...).Over(reproduce.Const(x.fluid...))())
	})
}

// ofPools returns a number for each seed that of finds from the rates of pools and the position of the best of them.
func ofPools(rates []reproduce.Values, of func(rate []float64, best int) float64) reproduce.Values {
	return func() (out []float64) {
		for seed := range rates[0]() {
			rate, best := make([]float64, len(rates)), 0
			for i := range rates {
				if rate[i] = rates[i]()[seed]; rate[i] > rate[best] {
					best = i
				}
			}
			out = append(out, of(rate, best))
		}
		return out
	}
}

// figure14 measures the pools of Figure 13 under every rule, for RM2 (§8.5).
func figure14(run *runner, f *reproduce.Sheet) error {
	s, err := run.deployment(paperSetup("rm2"))
	if err != nil {
		return err
	}
	x, err := s.topPools()
	if err != nil {
		return err
	}
	most, err := s.oracle()
	if err != nil {
		return err
	}
	p := f.Chart("14", "Kairos, Figure 14: RM2 by pool and rule", 1).
		Panel("throughput (queries/s)", "by upper bound", 0, reproduce.Auto).Faint("upper bound")
	for i, r := range x.ranked {
		at := f.At("model", "rm2", "arrivals", wholeMillis, "pool", fmt.Sprintf("%d. %v", i+1, pool(r.Pool)))
		place, upper := float64(i+1), reproduce.Const(r.Bound)
		at.Row("upper bound", throughputRow, "queries/s", upper)
		p.Point("upper bound", place, upper)
		p.Point("oracle", place, reproduce.Const(most.rates[most.best]))
		for _, rule := range comparedRules {
			tr := trial{setup: s.setup, pool: pool(r.Pool), system: rule, arrivals: wholeMillis}
			rates := run.throughput(tr, run.coarse).rates()
			at.Row(rule, throughputRow, "queries/s", rates)
			p.Point(rule, place, rates)
		}
	}
	return nil
}
