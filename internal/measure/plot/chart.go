package plot

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"

	gp "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Chart draws lines or bars in one or more panels. Lines of the same name have the same colour in all panels.
type Chart struct {
	Title  string
	Panels []Panel
	// Columns is the number of panels in a row; 0 means 1.
	Columns int
}

// Panel is one drawing of a Chart, with axes of its own.
type Panel struct {
	Name  string // of the y axis, with the unit
	XName string // of the x axis, with the unit
	Lines []Line
	// Groups names places on the x axis. Lines are then drawn as bars, with one Y for each group; their X is not used.
	Groups []string
	// Low and High are the ends of the y axis. NaN chooses an end by the data.
	Low, High float64
}

// Line is one series. X and Y have the same length, and X rises. NaN in Y leaves a gap.
type Line struct {
	Name  string
	X, Y  []float64
	Faint bool // drawn in grey, for references such as the demand
}

var palette = []color.RGBA{
	blue, red, green, orange, violet, teal, {0xbe, 0x18, 0x5d, 0xff}, {0x65, 0x4a, 0x1e, 0xff}, ink,
}

// names returns the names of the lines of all panels, each once, and which of them are faint.
func (c *Chart) names() (names []string, faint map[string]bool) {
	faint = make(map[string]bool)
	for i := range c.Panels {
		for _, l := range c.Panels[i].Lines {
			if !slices.Contains(names, l.Name) {
				names = append(names, l.Name)
				faint[l.Name] = l.Faint
			}
		}
	}
	return names, faint
}

func (c *Chart) colours() map[string]color.RGBA {
	out := make(map[string]color.RGBA)
	names, faint := c.names()
	next := 0
	for _, n := range names {
		if faint[n] {
			out[n] = grey
			continue
		}
		out[n] = palette[next%len(palette)]
		next++
	}
	return out
}

func (c *Chart) size() (w, h vg.Length, rows, cols int) {
	cols = max(c.Columns, 1)
	rows = (len(c.Panels) + cols - 1) / cols
	return 60 + vg.Length(cols)*max(330, 660/vg.Length(cols)), 64 + vg.Length(rows)*175, rows, cols
}

// PNG writes the chart to w, at 144 dots per inch. It returns an error for a chart without panels or a line whose X and
// Y differ in length.
func (c *Chart) PNG(w io.Writer) error { return c.drawing().png(w) }

// SVG writes the chart to w as a scalable drawing. Errors are those of PNG.
func (c *Chart) SVG(w io.Writer) error { return c.drawing().svg(w) }

func (c *Chart) draw(to draw.Canvas) error {
	if len(c.Panels) == 0 {
		return fmt.Errorf("chart %q has no panel", c.Title)
	}
	_, _, rows, cols := c.size()
	to.SetColor(color.White)
	to.Fill(to.Path())
	to.FillText(style(14, true, ink), vg.Point{X: 12, Y: to.Max.Y - 24}, c.Title)
	colours := c.colours()
	c.legend(to, colours)
	plots := make([][]*gp.Plot, rows)
	for r := range plots {
		plots[r] = make([]*gp.Plot, cols)
		for k := range plots[r] {
			if at := r*cols + k; at < len(c.Panels) {
				p, err := c.Panels[at].plot(colours)
				if err != nil {
					return err
				}
				plots[r][k] = p
			}
		}
	}
	tiles := draw.Tiles{
		Rows: rows, Cols: cols, PadTop: 70, PadBottom: 8, PadLeft: 8, PadRight: 16, PadX: 14, PadY: header,
	}
	for r, canvases := range gp.Align(plots, tiles, to) {
		for k, canvas := range canvases {
			if plots[r][k] == nil {
				continue
			}
			plots[r][k].Draw(canvas)
			data := plots[r][k].DataCanvas(canvas)
			to.FillText(style(10.5, true, ink), vg.Point{X: data.Min.X, Y: data.Max.Y + 8}, c.Panels[r*cols+k].Name)
		}
	}
	return nil
}

func (c *Chart) drawing() drawing {
	width, height, _, _ := c.size()
	return drawing{width, height, c.draw}
}

// legend draws one legend for all panels, below the title.
func (c *Chart) legend(to draw.Canvas, colours map[string]color.RGBA) {
	names, _ := c.names()
	x, y := vg.Length(12), to.Max.Y-42
	st := style(9.5, false, muted)
	for _, n := range names {
		to.SetColor(colours[n])
		to.SetLineWidth(2.5)
		var line vg.Path
		line.Move(vg.Point{X: x, Y: y + 3})
		line.Line(vg.Point{X: x + 14, Y: y + 3})
		to.Stroke(line)
		to.FillText(st, vg.Point{X: x + 18, Y: y}, n)
		x += 18 + st.Width(n) + 16
	}
}

func (p *Panel) plot(colours map[string]color.RGBA) (*gp.Plot, error) {
	g := gp.New()
	g.X.Label.Text = p.XName
	g.X.Label.TextStyle = tickStyle(g.X.Label.TextStyle)
	g.X.Tick.Label, g.Y.Tick.Label = tickStyle(g.X.Tick.Label), tickStyle(g.Y.Tick.Label)
	g.X.Tick.Marker, g.Y.Tick.Marker = ticks{8}, ticks{5}
	g.X.Color, g.Y.Color = faint, faint
	g.X.Tick.Color, g.Y.Tick.Color = faint, faint
	grid := plotter.NewGrid()
	grid.Vertical.Color = nil
	grid.Horizontal.Color = faint
	g.Add(grid)
	for n, l := range p.Lines {
		if p.Groups != nil {
			if err := p.bar(g, n, l, colours[l.Name]); err != nil {
				return nil, err
			}
			continue
		}
		if len(l.X) != len(l.Y) {
			return nil, fmt.Errorf("line %q has %d x and %d y", l.Name, len(l.X), len(l.Y))
		}
		for from := 0; from < len(l.Y); {
			var run plotter.XYs
			for ; from < len(l.Y) && !math.IsNaN(l.Y[from]); from++ {
				run = append(run, plotter.XY{X: l.X[from], Y: l.Y[from]})
			}
			for from < len(l.Y) && math.IsNaN(l.Y[from]) {
				from++
			}
			if len(run) == 0 {
				continue
			}
			line, err := plotter.NewLine(run)
			if err != nil {
				return nil, err
			}
			line.Color, line.Width = colours[l.Name], 1.3
			if l.Faint {
				line.Width = 2.2
			}
			g.Add(line)
			if len(run) <= 12 {
				dots, err := plotter.NewScatter(run)
				if err != nil {
					return nil, err
				}
				dots.GlyphStyle = draw.GlyphStyle{Color: colours[l.Name], Radius: 2, Shape: draw.CircleGlyph{}}
				g.Add(dots)
			}
		}
	}
	if p.Groups != nil {
		g.NominalX(p.Groups...)
		g.X.Min, g.X.Max = -0.5, float64(len(p.Groups))-0.5
	}
	if !math.IsNaN(p.Low) {
		g.Y.Min = p.Low
	}
	if !math.IsNaN(p.High) {
		g.Y.Max = p.High
	}
	if !(g.Y.Max > g.Y.Min) {
		g.Y.Max = g.Y.Min + 1
	}
	return g, nil
}

func (p *Panel) bar(g *gp.Plot, n int, l Line, c color.RGBA) error {
	values := make(plotter.Values, len(l.Y))
	for i, y := range l.Y {
		if !math.IsNaN(y) {
			values[i] = y
		}
	}
	width := vg.Length(min(14, 200/float64(len(p.Groups)*len(p.Lines)+1)))
	b, err := plotter.NewBarChart(values, width)
	if err != nil {
		return fmt.Errorf("bars %q: %w", l.Name, err)
	}
	b.Color, b.LineStyle.Width = c, 0
	b.Offset = width * vg.Length(float64(n)-float64(len(p.Lines)-1)/2)
	g.Add(b)
	return nil
}
