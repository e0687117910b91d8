package kairos

import (
	"math"

	"github.com/sluice-serving/sluice/report/plot"
	"github.com/sluice-serving/sluice/reproduce"
	"github.com/sluice-serving/sluice/sim/experiment"
	"github.com/sluice-serving/sluice/systems"
)

const throughputRow = "throughput"

// level notes what was measured with its bounds: the lowest and the highest over the seeds.
func (m measured) level(o *reproduce.Outcome, figure, system string, setting map[string]string) {
	o.Add(row(figure, system, throughputRow, "queries/s", setting), m.rates()...)
	o.Add(row(figure, system, "known carried", "queries/s", setting), m.each(func(a *experiment.Allowed) float64 { return a.Low })...)
	o.Add(row(figure, system, "known not carried", "queries/s", setting), m.each(func(a *experiment.Allowed) float64 { return a.High })...)
}

// each takes a number from every seed.
func (m measured) each(f func(*experiment.Allowed) float64) []float64 {
	out := make([]float64, len(m.Done))
	for i := range out {
		a := m.Done[i].(experiment.Allowed)
		out[i] = f(&a)
	}
	return out
}

// machines notes a pool, a column for each type.
func (p pool) machines(o *reproduce.Outcome, figure, system string, setting map[string]string) {
	for t, n := range p {
		o.Add(row(figure, system, types[t].Name, "", setting), float64(n))
	}
}

// rules for sending queries that pools are compared under (§7): Ribbon's, DRS, CLKWRK and Kairos's own, as far as there are
// systems of these names.
func rules() []string {
	var out []string
	for _, name := range []string{"fcfs", "drs", "clkwrk", "kairos"} {
		if _, err := systems.Get(name); err == nil {
			out = append(out, name)
		}
	}
	return out
}

// bars is a panel of bars in groups.
func bars(name string, groups []string, lines ...plot.Line) plot.Panel {
	return plot.Panel{Name: name, Groups: groups, Lines: lines, Low: 0, High: math.NaN()}
}

// chart of panels in so many columns.
func chart(o *reproduce.Outcome, name, title string, columns int, panels ...plot.Panel) {
	o.Charts = append(o.Charts, reproduce.Chart{Name: "figure-" + name, Chart: &plot.Chart{Title: "Kairos, Figure " + title, Panels: panels, Columns: columns}})
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
