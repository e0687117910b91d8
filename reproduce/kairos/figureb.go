package kairos

import (
	"fmt"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/measure/report/plot"
	planner "github.com/sluice-serving/sluice/planner/kairos"
	"github.com/sluice-serving/sluice/reproduce"
)

// others is about how many pools Figure B measures besides those with the highest bounds, spread over all.
const others = 20

// comparison is both bounds of all pools under the budget.
type comparison struct {
	model    string
	pools    []pool // in the order of the paper's bound
	upper    []float64
	fluid    []float64
	oracle   *oracular
	measured []int // places in pools
	runs     []measured
}

// figureB sets the paper's bound beside our linear program: how far they lie apart, which of them simulation and the
// oracle pass, and whose highest pools are the best.
func figureB(l *lab) error {
	var all []*comparison
	for _, m := range models {
		x, err := l.comparison(m.name)
		if err != nil {
			return err
		}
		all = append(all, x)
	}
	l.After(func(o *reproduce.Outcome) error {
		var panels []plot.Panel
		for _, x := range all {
			panels = append(panels, x.say(o))
		}
		chart(o, "B", "B: both bounds, all pools by the upper bound", 2, panels...)
		return nil
	})
	return nil
}

func (l *lab) comparison(model string) (*comparison, error) {
	s, err := l.service(at(model))
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
	x := &comparison{model: model}
	if x.oracle, err = s.oracle(); err != nil {
		return nil, err
	}
	for _, r := range ranked {
		x.pools, x.upper, x.fluid = append(x.pools, pool(r.Pool)), append(x.upper, r.Bound),
			append(x.fluid, f.Of(r.Pool))
	}
	every := max(len(x.pools)/others, 1)
	second := places(x.fluid)
	for i := range x.pools {
		if i < highest || second[i] <= highest || i%every == 0 {
			x.measured = append(x.measured, i)
			x.runs = append(x.runs, l.want(question{
				setup: at(model), pool: x.pools[i], system: own, arrivals: whole,
			}, l.coarse))
		}
	}
	return x, nil
}

// places are those of numbers from the highest down, 1 for the first; equal ones have one.
func places(v []float64) []int {
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

func (x *comparison) say(o *reproduce.Outcome) plot.Panel {
	setting := map[string]string{"model": x.model, "arrivals": whole.String()}
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
		o.Add(row("B", name, "upper bound over linear program", "x", setting), part[i])
	}
	o.Add(row("B", "all", "pools", "", setting), float64(len(x.pools)))
	o.Add(row("B", "all", "upper bound above the linear program", "pools", setting), float64(above))
	o.Add(row("B", "all", "measured", "pools", setting), float64(len(x.measured)))
	for _, b := range []struct {
		name   string
		bounds []float64
	}{{"upper bound", x.upper}, {"linear program", x.fluid}} {
		place := places(b.bounds)
		var oracleMost float64
		oracleAbove := 0
		for i, p := range x.pools {
			v := x.oracle.rates[p] / b.bounds[i]
			oracleMost = max(oracleMost, v)
			if v > 1 {
				oracleAbove++
			}
		}
		first := slices.Index(place, 1)
		var best, below, reached, passed []float64
		for seed := range x.runs[0].Done {
			top, n, share := 0, 0, 0.0
			taken := 0.0 // by the pool that this bound has first
			for k, i := range x.measured {
				rate := x.runs[k].rates()[seed]
				if rate > x.runs[top].rates()[seed] {
					top = k
				}
				if i == first {
					taken = rate
				}
				share = max(share, rate/b.bounds[i])
				if rate > b.bounds[i] {
					n++
				}
			}
			best = append(best, float64(place[x.measured[top]]))
			below = append(below, 100*(1-taken/x.runs[top].rates()[seed]))
			reached, passed = append(reached, share), append(passed, float64(n))
		}
		o.Add(row("B", b.name, "place of the best", "", setting), best...)
		o.Add(row("B", b.name, "its first below the best", "%", setting), below...)
		o.Add(row("B", b.name, "most reached by kairos", "x", setting), reached...)
		o.Add(row("B", b.name, "passed by kairos", "pools", setting), passed...)
		o.Add(row("B", b.name, "most reached by the oracle", "x", setting), oracleMost)
		o.Add(row("B", b.name, "passed by the oracle", "pools", setting), float64(oracleAbove))
	}
	p := plot.Panel{Name: x.model + ": queries/s", XName: "by upper bound", Low: 0, High: math.NaN()}
	upper, fluid, oracle, got := plot.Line{Name: "upper bound"}, plot.Line{Name: "linear program"},
		plot.Line{Name: "oracle", Faint: true}, plot.Line{Name: "kairos"}
	for i, pool := range x.pools {
		at := float64(i + 1)
		upper.X, upper.Y = append(upper.X, at), append(upper.Y, x.upper[i])
		fluid.X, fluid.Y = append(fluid.X, at), append(fluid.Y, x.fluid[i])
		oracle.X, oracle.Y = append(oracle.X, at), append(oracle.Y, x.oracle.rates[pool])
	}
	for k, i := range x.measured { // points, with a gap behind each
		got.X, got.Y = append(got.X, float64(i+1), float64(i)+1.5), append(got.Y, mean(x.runs[k].rates()), math.NaN())
	}
	p.Lines = []plot.Line{oracle, fluid, upper, got}
	return p
}
