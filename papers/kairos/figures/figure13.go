package kairos

import (
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/internal/measure/plot"
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
func figure13(run *runner) error {
	ladders := make(map[string]*topPools)
	all := make(map[trial]throughputs)
	ask := func(model string, r planner.Ranked) trial {
		return trial{setup: paperSetup(model), pool: pool(r.Pool), system: kairosRule, arrivals: wholeMillis}
	}
	for _, m := range models {
		s, err := run.deployment(paperSetup(m.name))
		if err != nil {
			return err
		}
		if ladders[m.name], err = s.topPools(); err != nil {
			return err
		}
		for _, r := range ladders[m.name].ranked {
			all[ask(m.name, r)] = run.throughputTask(ask(m.name, r), run.coarse)
		}
	}
	run.Report(func(o *reproduce.Outcome) error {
		var panels []plot.Panel
		for _, m := range models {
			x := ladders[m.name]
			p := plot.Panel{Name: m.name + ": queries/s", XName: "by upper bound", Low: 0, High: math.NaN()}
			bound, ours, got, star := plot.Line{Name: "upper bound", Faint: true}, plot.Line{Name: "linear program"},
				plot.Line{Name: "kairos"}, plot.Line{Name: "chosen"}
			rates := make([][]float64, len(x.ranked))
			for i, r := range x.ranked {
				setting := map[string]string{"model": m.name, "arrivals": wholeMillis.String()}
				system := fmt.Sprintf("%d. %v", i+1, pool(r.Pool))
				rates[i] = all[ask(m.name, r)].rates()
				o.AddRow(row("13", system, throughputRow, "queries/s", setting), rates[i]...)
				o.AddRow(row("13", system, "upper bound", "queries/s", setting), r.Bound)
				o.AddRow(row("13", system, "linear program", "queries/s", setting), x.fluid[i])
				at := float64(i + 1)
				bound.X, bound.Y = append(bound.X, at), append(bound.Y, r.Bound)
				ours.X, ours.Y = append(ours.X, at), append(ours.Y, x.fluid[i])
				got.X, got.Y = append(got.X, at), append(got.Y, reproduce.Mean(rates[i]))
				y := math.NaN()
				if i == x.chosen {
					y = reproduce.Mean(rates[i])
				}
				star.X, star.Y = append(star.X, at), append(star.Y, y)
			}
			x.addSummary(o, m.name, rates)
			p.Lines = []plot.Line{bound, ours, got, star}
			panels = append(panels, p)
		}
		addChart(o, "13", "13: pools with the highest bounds, and what they carry", 2, panels...)
		return nil
	})
	return nil
}

// addSummary adds the rank of the best pool by either bound, and by how much the chosen pool is below the best.
func (x *topPools) addSummary(o *reproduce.Outcome, model string, rates [][]float64) {
	setting := map[string]string{"model": model, "arrivals": wholeMillis.String(), "of the pools": "all above"}
	program := 0
	for i := range x.fluid {
		if x.fluid[i] > x.fluid[program] {
			program = i
		}
	}
	var place, ours, chosen, misses, first, byProgram, most []float64
	for seed := range rates[0] {
		best := 0
		for i := range rates {
			if rates[i][seed] > rates[best][seed] {
				best = i
			}
		}
		before := 1
		for i := range x.fluid {
			if x.fluid[i] > x.fluid[best] {
				before++
			}
		}
		place, ours = append(place, float64(best+1)), append(ours, float64(before))
		chosen = append(chosen, float64(x.chosen+1))
		below := func(i int) float64 { return 100 * (1 - rates[i][seed]/rates[best][seed]) }
		misses, first, byProgram = append(misses, below(x.chosen)), append(first, below(0)),
			append(byProgram, below(program))
		part := 0.0
		for i := range rates {
			part = max(part, rates[i][seed]/x.fluid[i])
		}
		most = append(most, part)
	}
	o.AddRow(row("13", "kairos", "place of the best", "", setting).WithPublished(10, "§8.5, at most"), place...)
	o.AddRow(row("13", "kairos", "its place by the linear program", "", setting), ours...)
	o.AddRow(row("13", "kairos", "place of the chosen", "", setting), chosen...)
	o.AddRow(row("13", "kairos", "chosen below the best", "%", setting), misses...)
	o.AddRow(row("13", "kairos", "highest bound below the best", "%", setting), first...)
	o.AddRow(row("13", "kairos", "linear program's first below the best", "%", setting), byProgram...)
	o.AddRow(row("13", "kairos", "most of the linear program", "x", setting), most...)
}
