package plot

import (
	"cmp"
	"errors"
	"fmt"
	"image/color"
	"math"
	"slices"

	gp "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// MaxFrontiers is the most frontiers in one figure: there are no more distinct colours.
const MaxFrontiers = 8

// Frontier is the best accuracy at every throughput, up to the highest that can be served.
type Frontier struct {
	Name   string
	Points []FrontierPoint // at least one, by rising throughput above 0
}

// FrontierPoint is one plan of a frontier. Accuracies and shares are fractions.
type FrontierPoint struct {
	Throughput float64   // queries/s
	Accuracy   float64   // mean over queries
	Apps       []float64 // accuracy by index in Legend.Apps
	Shares     []float64 // share of served items by index in Legend.Variants
}

// Legend names the apps and variants of frontiers.
type Legend struct {
	Demand     float64 // queries/s to mark; 0 for none
	Apps       []string
	Variants   []string
	Accuracies []float64 // by index in Variants, fractions
}

// NewFrontier draws frontiers over each other. Of a single one it also draws the accuracy of each app and the shares of
// variants. It returns an error unless there are 1 to MaxFrontiers frontiers with points.
func NewFrontier(title string, l Legend, list []Frontier) (*Figure, error) {
	if len(list) == 0 || len(list) > MaxFrontiers {
		return nil, fmt.Errorf("%d frontiers, want between 1 and %d in one figure", len(list), MaxFrontiers)
	}
	end := l.Demand
	for _, f := range list {
		if len(f.Points) == 0 {
			return nil, errors.New("frontier " + f.Name + " has no point")
		}
		end = max(end, f.Points[len(f.Points)-1].Throughput)
	}
	end *= 1.03 // space for the last point
	lines := func(name string) panel { return panel{name: name, top: 100, marked: l.Demand} }
	p := lines("Accuracy (%)")
	for i, f := range list {
		c := line{name: f.Name, colour: distinct[i], bold: true, drops: true}
		for _, x := range f.Points {
			c.add(x.Throughput, 100*x.Accuracy)
		}
		p.lines = append(p.lines, c)
	}
	p.fit(end)
	f := &Figure{title: title, names: []string{""}, panels: [][]panel{{p}}, width: 720, legendRoom: 8}
	if len(list) == 1 {
		p.lines[0].name = ""
		if n := len(l.Apps); n > 1 && n <= len(distinct) {
			p := lines("Accuracy of each app (%)")
			for a, name := range l.Apps {
				c := line{name: name, colour: distinct[a]}
				for _, x := range list[0].Points {
					c.add(x.Throughput, 100*x.Apps[a])
				}
				p.lines = append(p.lines, c)
			}
			p.fit(end)
			f.panels = append(f.panels, []panel{p})
		}
		// A legend cannot hold more variants.
		if stack := variantLayers(l, &list[0]); len(stack) > 0 && len(stack) <= maxLayers*2/3 {
			f.panels = append(f.panels, []panel{
				{name: "Served by variant (% of items)", stack: stack, xEnd: end, yHigh: 100, marked: l.Demand},
			})
		}
	}
	f.panels[len(f.panels)-1][0].xName = "queries served per second"
	f.height = 80 + vg.Length(len(f.panels))*210
	if len(f.panels) == 1 {
		f.height += 60
	}
	return f, nil
}

// distinct are the colours of lines that must be distinguished.
var distinct = []color.RGBA{
	blue, orange, green, violet, red, teal, grey, ink, {0xdb, 0x27, 0x77, 0xff}, {0x65, 0xa3, 0x0d, 0xff},
	{0x92, 0x40, 0x0e, 0xff}, {0x0e, 0xa5, 0xe9, 0xff},
}

// variantLayers returns the shares of variants along a frontier, the least accurate at the bottom. A plan for more
// queries also serves fewer, so a point holds from the point before it.
func variantLayers(l Legend, f *Frontier) []layer {
	var kinds []int
	for v := range l.Variants {
		if slices.ContainsFunc(f.Points, func(x FrontierPoint) bool { return x.Shares[v] > 0 }) {
			kinds = append(kinds, v)
		}
	}
	slices.SortStableFunc(kinds, func(a, b int) int { return cmp.Compare(l.Accuracies[a], l.Accuracies[b]) })
	var names []string
	for _, k := range kinds {
		names = append(names, l.Variants[k])
	}
	names = shorten(names)
	below := make([]float64, len(f.Points))
	var out []layer
	for i, k := range kinds {
		y := layer{name: names[i], colour: rampAt(i, len(kinds)), bucket: f.Points[0].Throughput}
		for at, x := range f.Points {
			y.low = append(y.low, 100*below[at])
			below[at] += x.Shares[k]
			y.high = append(y.high, 100*below[at])
		}
		out = append(out, y)
	}
	return out
}

// line is a line through points.
type line struct {
	name   string
	colour color.RGBA
	bold   bool
	drops  bool // to the axis after its last point, because no more can be served
	xy     plotter.XYs
}

func (l *line) add(x, y float64) { l.xy = append(l.xy, plotter.XY{X: x, Y: y}) }

// plot draws the line with a dot at each point. It begins at the axis, because a plan for more queries also serves
// fewer.
func (l *line) plot(g *gp.Plot, floor float64) {
	c, err := plotter.NewLine(append(plotter.XYs{{X: 0, Y: l.xy[0].Y}}, l.xy...))
	if err != nil {
		return
	}
	c.Color, c.Width = l.colour, 1
	if l.bold {
		c.Width = 2
	}
	g.Add(c)
	dots, err := plotter.NewScatter(l.xy)
	if err != nil {
		return
	}
	dots.Color, dots.Shape, dots.Radius = l.colour, draw.CircleGlyph{}, vg.Length(1.4)
	if l.bold {
		dots.Radius = 2.2
	}
	g.Add(dots)
	last := l.xy[len(l.xy)-1]
	if drop, err := plotter.NewLine(plotter.XYs{last, {X: last.X, Y: floor}}); err == nil && l.drops {
		drop.Color, drop.Width, drop.Dashes = l.colour, 1, []vg.Length{1.5, 2}
		g.Add(drop)
	}
}

// fit chooses the scales of a panel of lines.
func (p *panel) fit(end float64) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, l := range p.lines {
		for _, x := range l.xy {
			low, high = min(low, x.Y), max(high, x.Y)
		}
	}
	p.scale(low-0.03*(high-low), high, end) // dots at the edge are drawn whole
}

// lineHead draws the panel's name and, in a line of its own, the legend.
func (p *panel) lineHead(c draw.Canvas, data vg.Rectangle) {
	c.FillText(style(10, true, ink), vg.Point{X: data.Min.X, Y: data.Max.Y + 20}, p.name)
	const sample, gap, space = vg.Length(16), vg.Length(4), vg.Length(14)
	entry := style(9, false, ink)
	x, y := data.Min.X, data.Max.Y+6
	for _, l := range p.lines {
		if l.name == "" {
			continue
		}
		if x+sample+gap+entry.Width(l.name) > data.Max.X {
			c.FillText(entry, vg.Point{X: x, Y: y}, "…")
			return
		}
		width := vg.Length(1.2)
		if l.bold {
			width = 2.2
		}
		c.StrokeLine2(draw.LineStyle{Color: l.colour, Width: width}, x, y+3.2, x+sample, y+3.2)
		c.FillText(entry, vg.Point{X: x + sample + gap, Y: y}, l.name)
		x += sample + gap + entry.Width(l.name) + space
	}
	if p.marked > 0 && p.lines[0].bold {
		text := "the demand asked for"
		x = data.Max.X - entry.Width(text)
		c.FillText(entry, vg.Point{X: x, Y: data.Max.Y + 20}, text)
		c.StrokeLine2(draw.LineStyle{
			Color: muted, Width: 1, Dashes: []vg.Length{4, 3},
		}, x-gap-sample, data.Max.Y+23.2, x-gap, data.Max.Y+23.2)
	}
}
