package kairos

import (
	"fmt"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	planner "github.com/sluice-serving/sluice/papers/kairos"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// sampledPools is about how many pools Figure B measures besides those with the highest bounds. They are spread evenly
// over the ranking.
const sampledPools = 20

// boundComparison holds both bounds of all pools under the budget.
type boundComparison struct {
	model     string
	pools     []pool // by falling upper bound of the paper
	upper     []float64
	fluid     []float64
	oracle    *oraclePools
	simulated []int // indices into pools
	runs      []throughputs
}

// figureB compares the paper's bound with our linear program: how far they lie apart, which of them simulation and the
// oracle exceed, and whose highest pools are the best.
func figureB(run *runner) error {
	var all []*boundComparison
	for _, m := range models {
		x, err := run.compareBounds(m.name)
		if err != nil {
			return err
		}
		all = append(all, x)
	}
	run.Report(func(o *reproduce.Outcome) error {
		var panels []plot.Panel
		for _, x := range all {
			panels = append(panels, x.addRows(o))
		}
		addChart(o, "B", "B: both bounds, all pools by the upper bound", 2, panels...)
		return nil
	})
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
	x := &boundComparison{model: model}
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
			x.runs = append(x.runs, run.throughputTask(trial{
				setup: paperSetup(model), pool: x.pools[i], system: kairosRule, arrivals: wholeMillis,
			}, run.coarse))
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

// addRows adds the rows of a model and returns its panel.
func (x *boundComparison) addRows(o *reproduce.Outcome) plot.Panel {
	setting := map[string]string{"model": x.model, "arrivals": wholeMillis.String()}
	x.addBoundRatios(o, setting)
	x.addBoundQuality(o, "upper bound", x.upper, setting)
	x.addBoundQuality(o, "linear program", x.fluid, setting)
	return x.panel()
}

// addBoundRatios adds how far the two bounds lie apart.
func (x *boundComparison) addBoundRatios(o *reproduce.Outcome, setting map[string]string) {
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
	for _, i := range []int{least, most} {
		name := fmt.Sprintf("least, %v", x.pools[i])
		if i == most {
			name = fmt.Sprintf("most, %v", x.pools[i])
		}
		o.AddRow(row("B", name, "upper bound over linear program", "x", setting), part[i])
	}
	o.AddRow(row("B", "all", "pools", "", setting), float64(len(x.pools)))
	o.AddRow(row("B", "all", "upper bound above the linear program", "pools", setting), float64(above))
	o.AddRow(row("B", "all", "measured", "pools", setting), float64(len(x.simulated)))
}

// addBoundQuality adds how well a bound, given by pool, ranks the measured pools, and whether Kairos and the oracle
// exceed it.
func (x *boundComparison) addBoundQuality(o *reproduce.Outcome, name string, bounds []float64,
	setting map[string]string) {
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
	var best, below, reached, passed []float64
	for seed := range x.runs[0].Results {
		top, n, share := 0, 0, 0.0
		firstRate := 0.0 // of the pool with the highest bound
		for k, i := range x.simulated {
			rate := x.runs[k].rates()[seed]
			if rate > x.runs[top].rates()[seed] {
				top = k
			}
			if i == first {
				firstRate = rate
			}
			share = max(share, rate/bounds[i])
			if rate > bounds[i] {
				n++
			}
		}
		best = append(best, float64(place[x.simulated[top]]))
		below = append(below, 100*(1-firstRate/x.runs[top].rates()[seed]))
		reached, passed = append(reached, share), append(passed, float64(n))
	}
	o.AddRow(row("B", name, "place of the best", "", setting), best...)
	o.AddRow(row("B", name, "its first below the best", "%", setting), below...)
	o.AddRow(row("B", name, "most reached by kairos", "x", setting), reached...)
	o.AddRow(row("B", name, "passed by kairos", "pools", setting), passed...)
	o.AddRow(row("B", name, "most reached by the oracle", "x", setting), oracleMost)
	o.AddRow(row("B", name, "passed by the oracle", "pools", setting), float64(oracleAbove))
}

// panel draws bounds, oracle and measured throughputs by rank of the upper bound.
func (x *boundComparison) panel() plot.Panel {
	p := plot.Panel{Name: x.model + ": queries/s", XName: "by upper bound", Low: 0, High: math.NaN()}
	upper, fluid, oracle, measured := plot.Line{Name: "upper bound"}, plot.Line{Name: "linear program"},
		plot.Line{Name: "oracle", Faint: true}, plot.Line{Name: "kairos"}
	for i, pool := range x.pools {
		at := float64(i + 1)
		upper.X, upper.Y = append(upper.X, at), append(upper.Y, x.upper[i])
		fluid.X, fluid.Y = append(fluid.X, at), append(fluid.Y, x.fluid[i])
		oracle.X, oracle.Y = append(oracle.X, at), append(oracle.Y, x.oracle.rates[pool])
	}
	for k, i := range x.simulated { // points: a gap follows each
		measured.X = append(measured.X, float64(i+1), float64(i)+1.5)
		measured.Y = append(measured.Y, reproduce.Mean(x.runs[k].rates()), math.NaN())
	}
	p.Lines = []plot.Line{oracle, fluid, upper, measured}
	return p
}
