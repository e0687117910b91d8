package reproduce

import (
	"io"
	"math"

	"github.com/sluice-serving/sluice/internal/measure/plot"
)

// Chart is a drawing. Name is the name of its file, without an extension.
type Chart struct {
	Name string
	Drawing
}

// Drawing is what package plot draws.
type Drawing interface {
	PNG(io.Writer) error
	SVG(io.Writer) error
}

// AddChart adds a chart of panels, laid out in the given number of columns. figure names the file: figure-8 for "8".
func (o *Outcome) AddChart(figure, title string, columns int, panels ...plot.Panel) {
	o.Charts = append(o.Charts, Chart{
		Name: "figure-" + figure, Drawing: &plot.Chart{Title: title, Panels: panels, Columns: columns},
	})
}

// Bars returns a panel of bars that begin at 0: one group for each name in groups, in it one bar for each line. Y of a
// line has one value for each group.
func Bars(name string, groups []string, lines ...plot.Line) plot.Panel {
	return plot.Panel{Name: name, Groups: groups, Lines: lines, Low: 0, High: math.NaN()}
}
