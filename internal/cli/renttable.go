package cli

import (
	"fmt"
	"io"

	"github.com/sluice-serving/sluice/internal/host/planning"
	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/internal/measure/quantity"
)

// writeRent prints the pools of each budget and, with --out, writes them into a folder.
func (p *planFlags) writeRent(e *Env, r *planning.Rent, ranged bool) error {
	e.bar.clear()
	if p.asJSON {
		if err := writeJSON(e.Stdout, r); err != nil {
			return err
		}
	} else if err := printRent(e.Stdout, r, ranged); err != nil {
		return err
	}
	if !ranged {
		return p.save(e, r, nil)
	}
	return p.save(e, r, func(dir string) ([]string, error) { return plotBudgets(dir, r) })
}

// printRent writes one budget in full, or several with a line each.
func printRent(w io.Writer, r *planning.Rent, ranged bool) error {
	fmt.Fprintf(w, "app %s, variant %s, %s %% of the queries within %s ms, rules of system %s\n\n", r.App, r.Variant,
		quantity.Number(r.Percentile), quantity.Number(r.SLOMS), r.System)
	if ranged {
		return printBudgets(w, r)
	}
	v := &r.Budgets[0]
	how := fmt.Sprintf("chosen by bounds of the %d pools within %s $/h, without trying one", v.Pools,
		quantity.Dollars(v.Budget))
	switch {
	case r.Demand > 0:
		how = fmt.Sprintf("the cheapest that carries %s: %d of the %d pools within %s $/h were simulated to find it",
			quantity.Rate(r.Demand), v.Tried, v.Pools, quantity.Dollars(v.Budget))
	case v.Tried > 0 && !v.Sure:
		how = fmt.Sprintf("carries most of the %d pools with the highest estimates, of %d within %s $/h", v.Tried,
			v.Pools, quantity.Dollars(v.Budget))
	case v.Tried > 0:
		how = fmt.Sprintf("carries most of the %d pools within %s $/h: %d were simulated to know it", v.Pools,
			quantity.Dollars(v.Budget), v.Tried)
	}
	rows := [][]string{{"", "POOL", "$/h", "BOUND", "LP BOUND", "ESTIMATE", "EXPECTED", "", "AT MOST", "$ PER MILLION"}}
	if v.Chosen != nil {
		rows = append(rows, poolRow("*", v.Chosen))
	}
	for i := range v.RunnersUp {
		rows = append(rows, poolRow("", &v.RunnersUp[i]))
	}
	if v.Homogeneous != nil {
		rows = append(rows, poolRow("=", v.Homogeneous))
	}
	if err := columns(w, "llrrrrrlrr", rows); err != nil {
		return err
	}
	if v.Chosen != nil {
		fmt.Fprintf(w, "\n*  %s\n", how)
	}
	if v.Homogeneous != nil {
		same := "best"
		if r.Demand > 0 {
			same = "cheapest"
		}
		scaled := ""
		if v.Scaled != nil {
			scaled = fmt.Sprintf("; %s if the whole budget could be spent on it", quantity.Rate(*v.Scaled))
		}
		fmt.Fprintf(w, "=  the %s of one type%s\n", same, scaled)
	}
	if v.AtMost != nil {
		fmt.Fprintf(w, "   no machines for %s $/h carry more than %s\n", quantity.Dollars(v.Budget),
			quantity.Rate(*v.AtMost))
	}
	if v.AtLeast != nil {
		fmt.Fprintf(w, "   no machines carry it for less than %s $/h\n", quantity.Dollars(*v.AtLeast))
	}
	_, err := fmt.Fprint(w, rentNotes)
	return err
}

const rentNotes = `
BOUND is Kairos's estimate of what a pool carries at most, LP BOUND what none can pass when queries run one at a time,
ESTIMATE what is left of that when queries arrive at random and wait.
EXPECTED is simulated with Poisson arrivals; behind it, between which rates it is known to lie.
AT MOST is what no rule can pass on these machines, whatever its batches.
`

// poolRow is a line of the table.
func poolRow(mark string, v *planning.Pool) []string {
	out := []string{
		mark, v.Text, quantity.Dollars(v.CostPerHour), quantity.Rate(v.Upper), quantity.Rate(v.Fluid),
		quantity.Rate(v.Estimate), "-", "", "-", "-",
	}
	if v.Expected != nil {
		out[6] = quantity.Rate(*v.Expected)
		out[7] = fmt.Sprintf("(%s..%s)", quantity.Number(*v.Low), quantity.Number(*v.High))
	}
	if v.AtMost != nil {
		out[8] = quantity.Rate(*v.AtMost)
	}
	if v.PerMillion != nil {
		out[9] = quantity.Dollars(*v.PerMillion)
	}
	return out
}

// printBudgets writes a line for every budget.
func printBudgets(w io.Writer, r *planning.Rent) error {
	rows := [][]string{
		{
			"BUDGET", "POOL", "$/h", "BOUND", "LP BOUND", "ESTIMATE", "EXPECTED", "", "AT MOST", "$ PER MILLION",
			"OF ONE TYPE", "SCALED", "ANY FOR IT",
		},
	}
	for i := range r.Budgets {
		v := &r.Budgets[i]
		row := []string{quantity.Dollars(v.Budget), "none", "", "", "", "", "", "", "", "", "-", "-", "-"}
		if v.Chosen != nil {
			copy(row[1:], poolRow("", v.Chosen)[1:])
		}
		if h := v.Homogeneous; h != nil && h.Expected != nil {
			row[10] = quantity.Rate(*h.Expected)
		}
		if v.Scaled != nil {
			row[11] = quantity.Rate(*v.Scaled)
		}
		if v.AtMost != nil {
			row[12] = quantity.Rate(*v.AtMost)
		}
		rows = append(rows, row)
	}
	if err := columns(w, "rlrrrrrlrrrrr", rows); err != nil {
		return err
	}
	_, err := fmt.Fprint(w, rentNotes+"ANY FOR IT is what no rule can pass with any machines for the budget.\n")
	return err
}

// plotBudgets draws throughput and cost over budgets into a folder.
func plotBudgets(dir string, r *planning.Rent) ([]string, error) {
	expected, upper, fluid, same := plot.Line{Name: "expected"}, plot.Line{Name: "Kairos's bound"},
		plot.Line{Name: "linear program's bound"}, plot.Line{Name: "one type, scaled to the budget"}
	cost, costSame := plot.Line{Name: "expected"}, plot.Line{Name: "one type, scaled to the budget"}
	add := func(l *plot.Line, x, y float64) { l.X, l.Y = append(l.X, x), append(l.Y, y) }
	for i := range r.Budgets {
		v := &r.Budgets[i]
		if v.Chosen == nil {
			continue
		}
		add(&upper, v.Budget, v.Chosen.Upper)
		add(&fluid, v.Budget, v.Chosen.Fluid)
		if v.Chosen.Expected != nil {
			add(&expected, v.Budget, *v.Chosen.Expected)
		}
		if v.Chosen.PerMillion != nil {
			add(&cost, v.Budget, *v.Chosen.PerMillion)
		}
		if v.Scaled != nil && *v.Scaled > 0 {
			add(&same, v.Budget, *v.Scaled)
			add(&costSame, v.Budget, v.Budget/(3600**v.Scaled)*1e6)
		}
	}
	c := plot.Chart{Title: fmt.Sprintf("What budgets buy for app %s", r.App), Panels: []plot.Panel{
		{Name: "queries/s in time", XName: "budget ($/h)", Lines: []plot.Line{expected, same, upper, fluid}},
		{Name: "$ per million queries", XName: "budget ($/h)", Lines: []plot.Line{cost, costSame}},
	}}
	return drawn(dir, "budget", &c)
}
