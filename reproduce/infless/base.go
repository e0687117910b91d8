package infless

import (
	"fmt"

	"github.com/sluice-serving/sluice/report/plot"
	"github.com/sluice-serving/sluice/reproduce"
)

// lab is where figures say what they want.
type lab struct{ *reproduce.Lab }

// row begins a row of this paper.
func row(figure, system, quantity, unit string, setting map[string]string) reproduce.Row {
	return reproduce.Row{Paper: "infless", Figure: figure, System: system, Quantity: quantity, Unit: unit, Setting: setting}
}

// said gives a row what was published.
func said(r reproduce.Row, value float64, source string) reproduce.Row {
	r.Published, r.Source = reproduce.Published(value), source
	return r
}

func chart(o *reproduce.Outcome, name, title string, columns int, panels ...plot.Panel) {
	o.Charts = append(o.Charts, reproduce.Chart{Name: "figure-" + name, Chart: &plot.Chart{Title: "INFless, Figure " + title, Panels: panels, Columns: columns}})
}

func setting(pairs ...any) map[string]string {
	out := make(map[string]string)
	for k := 0; k < len(pairs); k += 2 {
		out[fmt.Sprint(pairs[k])] = fmt.Sprint(pairs[k+1])
	}
	return out
}
