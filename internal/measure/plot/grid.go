package plot

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Grid is a table of numbers shown by colour: a row for each name of Rows, a column for each of Columns.
type Grid struct {
	Title, Subtitle string // Subtitle is a line below the title
	Rows, Columns   []string
	Cells           [][]GridCell // by row, then by column
	// Low and High are the values of the darkest and the lightest colour. Values beyond are drawn as these.
	Low, High float64
	Empty     string // legend of cells without a value; "" for none
}

// GridCell is one number. Text is written in its cell. A Value of NaN leaves the cell grey. Marked puts a frame around.
type GridCell struct {
	Value  float64
	Text   string
	Marked bool
}

// PNG writes the grid to w, at 144 dots per inch. It returns an error for a grid without cells, or one whose cells do
// not go with its names.
func (g *Grid) PNG(w io.Writer) error {
	d, err := g.drawing()
	if err != nil {
		return err
	}
	return d.png(w)
}

// SVG writes the grid to w as a scalable drawing. Errors are those of PNG.
func (g *Grid) SVG(w io.Writer) error {
	d, err := g.drawing()
	if err != nil {
		return err
	}
	return d.svg(w)
}

func (g *Grid) drawing() (drawing, error) {
	if err := g.check(); err != nil {
		return drawing{}, err
	}
	width, height := g.size()
	return drawing{width, height, func(c draw.Canvas) error { g.draw(c); return nil }}, nil
}

func (g *Grid) check() error {
	if len(g.Rows) == 0 || len(g.Columns) == 0 || !(g.High > g.Low) {
		return errors.New("the grid has no cells, or its scale no length; nothing to draw")
	}
	if len(g.Cells) != len(g.Rows) {
		return fmt.Errorf("%d rows of cells for %d names", len(g.Cells), len(g.Rows))
	}
	for y, row := range g.Cells {
		if len(row) != len(g.Columns) {
			return fmt.Errorf("row %d of the grid has %d cells for %d columns", y+1, len(row), len(g.Columns))
		}
	}
	return nil
}

// Sizes of the parts of a grid.
const (
	cellWidth, cellHeight = vg.Length(23), vg.Length(14)
	gridMargin            = vg.Length(12)
	gridHead              = vg.Length(52) // title and subtitle
	gridLegend            = vg.Length(26)
)

var unknown = color.RGBA{0xd1, 0xd5, 0xdb, 0xff}

func gridLabel() draw.TextStyle { return style(8.5, false, ink) }

// widest is the width of the longest of some texts.
func widest(st draw.TextStyle, texts []string) (out vg.Length) {
	for _, t := range texts {
		out = max(out, st.Width(t))
	}
	return out
}

func (g *Grid) size() (width, height vg.Length) {
	label := gridLabel()
	width = 2*gridMargin + widest(label, g.Rows) + 6 + cellWidth*vg.Length(len(g.Columns))
	width = max(width, 2*gridMargin+style(14, true, ink).Width(g.Title), 2*gridMargin+
		style(10, false, muted).Width(g.Subtitle), 420)
	height = gridHead + gridLegend + widest(label, g.Columns) + 8 + cellHeight*vg.Length(len(g.Rows)) + gridMargin
	return width, height
}

func (g *Grid) draw(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Path())
	c.FillText(style(14, true, ink), vg.Point{X: gridMargin, Y: c.Max.Y - 24}, g.Title)
	c.FillText(style(10, false, muted), vg.Point{X: gridMargin, Y: c.Max.Y - 41}, g.Subtitle)
	g.legend(c, c.Max.Y-gridHead-12)
	label := gridLabel()
	left := gridMargin + widest(label, g.Rows) + 6
	top := c.Max.Y - gridHead - gridLegend - widest(label, g.Columns) - 8
	upright := label
	upright.Rotation = math.Pi / 2
	upright.YAlign = draw.YCenter
	for x, name := range g.Columns {
		c.FillText(upright, vg.Point{X: left + cellWidth*(vg.Length(x)+0.5), Y: top + 4}, name)
	}
	for y, name := range g.Rows {
		low := top - cellHeight*vg.Length(y+1)
		c.FillText(label, vg.Point{X: left - 6 - label.Width(name), Y: low + 4}, name)
		for x := range g.Columns {
			g.cell(c, &g.Cells[y][x], left+cellWidth*vg.Length(x), low)
		}
	}
}

// cell draws a cell whose lower left corner is given.
func (g *Grid) cell(c draw.Canvas, of *GridCell, x, y vg.Length) {
	box := rectangle(x+0.5, y+0.5, cellWidth-1, cellHeight-1)
	fill := g.colour(of.Value)
	c.FillPolygon(fill, box)
	if of.Marked {
		c.StrokeLines(draw.LineStyle{Color: red, Width: 1.5}, append(slices.Clone(box), box[0]))
	}
	st := style(7.5, false, readable(fill))
	if w := st.Width(of.Text); of.Text != "" && w < cellWidth {
		c.FillText(st, vg.Point{X: x + (cellWidth-w)/2, Y: y + 4.2}, of.Text)
	}
}

func rectangle(x, y, w, h vg.Length) []vg.Point {
	return []vg.Point{{X: x, Y: y}, {X: x + w, Y: y}, {X: x + w, Y: y + h}, {X: x, Y: y + h}}
}

// legend draws the scale, at the height y.
func (g *Grid) legend(c draw.Canvas, y vg.Length) {
	const pieces, piece = 11, vg.Length(14)
	entry := gridLabel()
	x := gridMargin
	write := func(text string) {
		c.FillText(entry, vg.Point{X: x, Y: y + 1}, text)
		x += entry.Width(text) + 5
	}
	write(fmt.Sprintf("%g", g.Low))
	for k := range pieces {
		v := g.Low + (g.High-g.Low)*float64(k)/(pieces-1)
		c.FillPolygon(g.colour(v), rectangle(x, y-1.5, piece, 9))
		x += piece
	}
	x += 5
	write(fmt.Sprintf("%g", g.High))
	if g.Empty != "" {
		x += 14
		c.FillPolygon(unknown, rectangle(x, y-1.5, piece, 9))
		x += piece + 5
		write(g.Empty)
	}
}

// colour is that of a value.
func (g *Grid) colour(v float64) color.RGBA {
	if math.IsNaN(v) {
		return unknown
	}
	const shades = 256
	at := (min(max(v, g.Low), g.High) - g.Low) / (g.High - g.Low)
	return rampAt(int(at*(shades-1)+0.5), shades)
}

// readable returns a colour that can be read on another.
func readable(on color.RGBA) color.Color {
	if 299*int(on.R)+587*int(on.G)+114*int(on.B) > 140_000 {
		return ink
	}
	return color.White
}
