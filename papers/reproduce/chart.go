package reproduce

import (
	"io"
	"math"
	"slices"

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

// Graph is a chart while it is declared.
type Graph struct {
	title   string
	columns int
	panels  []*Panel
}

// Chart adds a chart of panels, laid out in the given number of columns. name names the file: figure-8 for "8". A chart
// without points is left out.
func (s *Sheet) Chart(name, title string, columns int) *Graph {
	g := &Graph{title: title, columns: columns}
	s.Report(func(o *Outcome) error {
		c := &plot.Chart{Title: g.title, Columns: g.columns}
		points := 0
		for _, p := range g.panels {
			c.Panels = append(c.Panels, p.drawn())
			for _, l := range p.Lines {
				points += len(l.Y)
			}
		}
		if points > 0 {
			o.Charts = append(o.Charts, Chart{Name: "figure-" + name, Drawing: c})
		}
		return nil
	})
	return g
}

// Panel is a panel of a chart while it is declared. Its lines come in the order in which they were first named.
type Panel struct {
	plot.Panel
	points []func()
}

// Auto has an end of an axis chosen by the data.
var Auto = math.NaN()

// NewPanel returns a panel of lines over an axis.
func NewPanel(name, axis string, low, high float64) *Panel {
	return &Panel{Panel: plot.Panel{Name: name, XName: axis, Low: low, High: high}}
}

// Add adds panels.
func (g *Graph) Add(p ...*Panel) { g.panels = append(g.panels, p...) }

// Panel adds a panel of lines over an axis.
func (g *Graph) Panel(name, axis string, low, high float64) *Panel {
	p := NewPanel(name, axis, low, high)
	g.Add(p)
	return p
}

// Bars adds a panel of bars that begin at 0.
func (g *Graph) Bars(name string) *Panel { return g.Panel(name, "", 0, Auto) }

// line returns the position of a line, which it adds when there is none of that name.
func (p *Panel) line(name string) int {
	at := slices.IndexFunc(p.Lines, func(l plot.Line) bool { return l.Name == name })
	if at < 0 {
		at = len(p.Lines)
		p.Lines = append(p.Lines, plot.Line{Name: name})
	}
	return at
}

// Faint draws lines as references, in grey.
func (p *Panel) Faint(names ...string) *Panel {
	for _, name := range names {
		p.Lines[p.line(name)].Faint = true
	}
	return p
}

// Curve adds points to a line; points is called when the tasks have run.
func (p *Panel) Curve(name string, points func() (x, y []float64)) {
	at := p.line(name)
	p.points = append(p.points, func() {
		x, y := points()
		p.Lines[at].X, p.Lines[at].Y = append(p.Lines[at].X, x...), append(p.Lines[at].Y, y...)
	})
}

// Point adds a point to a line, at the mean of y; none where y has no numbers.
func (p *Panel) Point(name string, x float64, y Values) {
	p.Curve(name, func() ([]float64, []float64) {
		v := y()
		if len(v) == 0 {
			return nil, nil
		}
		return []float64{x}, []float64{Mean(v)}
	})
}

// Bar adds the bar of a line to a group, as high as the mean of y. Groups come in the order in which they were first
// named, and a line has a bar in each.
func (p *Panel) Bar(name, group string, y Values) {
	if !slices.Contains(p.Groups, group) {
		p.Groups = append(p.Groups, group)
	}
	p.Curve(name, func() ([]float64, []float64) { return nil, []float64{y.Mean()} })
}

// drawn returns the panel with its points.
func (p *Panel) drawn() plot.Panel {
	for _, add := range p.points {
		add()
	}
	return p.Panel
}
