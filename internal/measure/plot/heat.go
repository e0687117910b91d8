package plot

import (
	"errors"
	"fmt"
	"image/color"
	"io"

	gp "gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Heat is a map of a grid of cells, each of which belongs to one of a few kinds. Kinds are shown by colour.
type Heat struct {
	Title, Subtitle string // Subtitle is a line below the title
	XName, YName    string
	// X has the left edge of each column, in rising order. The last column is as wide as the one before it.
	X []float64
	// Rows has the cells of y = 1, 2 and so on, from the bottom up. Each row has one cell for each column.
	Rows  [][]HeatCell
	Kinds []string // names of the kinds, by HeatCell.Kind; colours go from dark to light
	Pale  string   // legend of pale cells; "" where there are none

}

// HeatCell is one cell of a Heat. Kind is an index into Heat.Kinds and determines the colour. Pale draws the cell in a
// lighter colour. Text is written in the cell if there is room. Adjacent cells of a row that are equal get their text
// once.
type HeatCell struct {
	Kind int
	Pale bool
	Text string
}

// PNG writes the map to w, at 144 dots per inch. It returns an error for a grid without cells or with rows of different
// length.
func (h *Heat) PNG(w io.Writer) error {
	d, err := h.drawing()
	if err != nil {
		return err
	}
	return d.png(w)
}

// SVG writes the map to w as a scalable drawing. Errors are those of PNG.
func (h *Heat) SVG(w io.Writer) error {
	d, err := h.drawing()
	if err != nil {
		return err
	}
	return d.svg(w)
}

func (h *Heat) drawing() (drawing, error) {
	width, height, err := h.size()
	return drawing{width, height, func(c draw.Canvas) error { h.draw(c); return nil }}, err
}

const heatWidth = vg.Length(720)

func (h *Heat) size() (width, height vg.Length, err error) {
	if len(h.X) == 0 || len(h.Rows) == 0 || len(h.Kinds) == 0 {
		return 0, 0, errors.New("the map has no cells; nothing to draw")
	}
	for y, row := range h.Rows {
		if len(row) != len(h.X) {
			return 0, 0, fmt.Errorf("row %d of the map has %d cells for %d columns", y+1, len(row), len(h.X))
		}
		for _, c := range row {
			if c.Kind < 0 || c.Kind >= len(h.Kinds) {
				return 0, 0, fmt.Errorf("row %d of the map has a cell of kind %d of %d", y+1, c.Kind, len(h.Kinds))
			}
		}
	}
	rows := min(max(vg.Length(len(h.Rows))*12, 150), 420)
	return heatWidth, 64 + rows + 44 + vg.Length(len(h.legend()))*15, nil
}

// legend divides the kinds, given by index, into lines.
func (h *Heat) legend() (lines [][]int) {
	entry := style(9, false, ink)
	x := heatWidth
	for k, name := range h.Kinds {
		w := legendSample + legendGap + entry.Width(name) + legendSpace
		if x+w > heatWidth-60 {
			lines = append(lines, nil)
			x = 0
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], k)
		x += w
	}
	return lines
}

const legendSample, legendGap, legendSpace = vg.Length(11), vg.Length(5), vg.Length(16)

func (h *Heat) draw(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Path())
	c.FillText(style(14, true, ink), vg.Point{X: 12, Y: c.Max.Y - 24}, h.Title)
	c.FillText(style(10, false, muted), vg.Point{X: 12, Y: c.Max.Y - 41}, h.Subtitle)
	lines := h.legend()
	top := c.Max.Y - 50
	entry := style(9, false, ink)
	y := top
	var data vg.Rectangle
	g := h.plot()
	area := draw.Crop(c, 8, -18, 8, -(c.Max.Y - (top - vg.Length(len(lines))*15 - 8)))
	data = g.DataCanvas(area).Rectangle
	for _, line := range lines {
		y -= 12
		x := data.Min.X
		for _, k := range line {
			c.FillPolygon(h.colour(k), []vg.Point{
				{X: x, Y: y - 1.5}, {X: x + legendSample, Y: y - 1.5}, {X: x + legendSample, Y: y + 7.5},
				{X: x, Y: y + 7.5},
			})
			c.FillText(entry, vg.Point{X: x + legendSample + legendGap, Y: y}, h.Kinds[k])
			x += legendSample + legendGap + entry.Width(h.Kinds[k]) + legendSpace
		}
		y -= 3
	}
	if h.Pale != "" {
		x := data.Max.X - entry.Width(h.Pale)
		y = c.Max.Y - 41
		c.FillText(entry, vg.Point{X: x, Y: y}, h.Pale)
		x -= legendSample + legendGap
		box := []vg.Point{
			{X: x, Y: y - 1.5}, {X: x + legendSample, Y: y - 1.5}, {X: x + legendSample, Y: y + 7.5},
			{X: x, Y: y + 7.5},
		}
		c.FillPolygon(h.colour(0), box)
		c.FillPolygon(paleOverlay, box)
	}
	g.Draw(area)
}

func (h *Heat) colour(kind int) color.RGBA { return rampAt(kind, len(h.Kinds)) }

// end returns the right edge of the last column.
func (h *Heat) end() float64 {
	last := len(h.X) - 1
	if last == 0 {
		return h.X[0] + 1
	}
	return 2*h.X[last] - h.X[last-1]
}

func (h *Heat) plot() *gp.Plot {
	g := gp.New()
	g.BackgroundColor = nil
	g.X.Padding, g.Y.Padding = 0, 0
	g.X.Tick.Label, g.Y.Tick.Label = tickStyle(g.X.Tick.Label), tickStyle(g.Y.Tick.Label)
	g.X.Tick.Length, g.Y.Tick.Length = 3, 3
	g.X.Tick.Width, g.Y.Tick.Width = 0, 0
	g.X.Width, g.Y.Width = 0, 0
	g.X.Tick.Marker = ticks{most: 10}
	g.Y.Tick.Marker = wholeTicks{most: 8}
	for _, a := range []struct {
		axis *gp.Axis
		name string
	}{{&g.X, h.XName}, {&g.Y, h.YName}} {
		a.axis.Label.Text = a.name
		was := a.axis.Label.TextStyle
		st := style(9.5, false, muted)
		st.XAlign, st.YAlign, st.Rotation = was.XAlign, was.YAlign, was.Rotation
		a.axis.Label.TextStyle = st
	}
	g.Add(heatCells{h})
	g.X.Min, g.X.Max, g.Y.Min, g.Y.Max = h.X[0], h.end(), 0.5, float64(len(h.Rows))+0.5
	return g
}

// wholeTicks places ticks at whole numbers from 1 on.
type wholeTicks struct{ most int }

// Ticks implements gonum's plot.Ticker.
func (t wholeTicks) Ticks(low, high float64) []gp.Tick {
	out := []gp.Tick{{Value: 1, Label: "1"}}
	for _, x := range (ticks(t)).Ticks(0, high) {
		if x.Value > 1.5 && x.Value == float64(int(x.Value)) {
			out = append(out, x)
		}
	}
	return out
}

// heatCells draws the cells, runs of equal ones as one rectangle, with white lines between rows.
type heatCells struct{ *Heat }

// Plot implements gonum's plot.Plotter.
func (h heatCells) Plot(c draw.Canvas, g *gp.Plot) {
	tx, ty := g.Transforms(&c)
	rowHeight := ty(2) - ty(1)
	gap := min(rowHeight*0.06, 1)
	for y, row := range h.Rows {
		low, high := ty(float64(y)+0.5)+gap/2, ty(float64(y)+1.5)-gap/2
		h.runs(row, func(a, b HeatCell) bool { return a.Kind == b.Kind }, func(of HeatCell, from, to float64) {
			a, b := tx(from), tx(to)
			c.FillPolygon(h.colour(of.Kind), []vg.Point{
				{X: a, Y: low}, {X: b, Y: low}, {X: b, Y: high}, {X: a, Y: high},
			})
		})
		h.runs(row, func(a, b HeatCell) bool { return a.Pale == b.Pale }, func(of HeatCell, from, to float64) {
			if of.Pale {
				a, b := tx(from), tx(to)
				c.FillPolygon(paleOverlay, []vg.Point{{X: a, Y: low}, {X: b, Y: low}, {X: b, Y: high}, {X: a, Y: high}})
			}
		})
		h.runs(row, func(a, b HeatCell) bool { return a == b }, func(of HeatCell, from, to float64) {
			a, b := tx(from), tx(to)
			st := style(min(rowHeight*0.62, 9), false, h.textColour(of))
			if w := st.Width(of.Text); of.Text != "" && w+1 < b-a && rowHeight >= 9 {
				c.FillText(st, vg.Point{X: (a + b - w) / 2, Y: (low+high)/2 - st.Font.Size*0.35}, of.Text)
			}
		})
	}
}

// runs calls do for every maximal run of cells in a row that are the same, with its left and right edge.
func (h *Heat) runs(row []HeatCell, same func(a, b HeatCell) bool, do func(of HeatCell, from, to float64)) {
	for from := 0; from < len(row); {
		to := from + 1
		for to < len(row) && same(row[from], row[to]) {
			to++
		}
		end := h.end()
		if to < len(row) {
			end = h.X[to]
		}
		do(row[from], h.X[from], end)
		from = to
	}
}

// paleOverlay is painted over a cell to make it pale.
var paleOverlay = color.NRGBA{0xff, 0xff, 0xff, 0x70}

// textColour returns a colour that can be read on a cell.
func (h *Heat) textColour(of HeatCell) color.Color {
	c := h.colour(of.Kind)
	lightness := 299*int(c.R) + 587*int(c.G) + 114*int(c.B)
	if of.Pale {
		lightness += (255_000 - lightness) * 0x70 / 0xff
	}
	if lightness > 140_000 {
		return ink
	}
	return color.White
}
