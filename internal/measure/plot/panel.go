package plot

import (
	"image/color"
	"math"
	"slices"

	gp "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/sluice-serving/sluice/serving/report"
)

// panel is one drawing of a figure, with its axes.
type panel struct {
	name   string // with the unit
	curves []curve
	stack  []layer // drawn instead of curves
	marks  []mark
	spans  []Span  // shaded; spanNames writes their names into the panel
	low    float64 // lowest y of the axis, at most; NaN lets the data choose
	top    float64 // highest y of the axis, such as 100 %; 0 for no limit
	// the same for a whole row after shareScales
	xEnd, yLow, yHigh float64
	spanNames         bool
}

// curve is one quantity over time, by bucket; NaN where it is unknown.
type curve struct {
	name   string
	colour color.RGBA
	fill   bool
	y      []float64
	bucket float64 // s
}

// mark is a level with a horizontal line, such as an objective.
type mark struct {
	name string
	y    float64
}

var (
	grey   = color.RGBA{0x9c, 0xa3, 0xaf, 0xff}
	blue   = color.RGBA{0x25, 0x63, 0xeb, 0xff}
	red    = color.RGBA{0xdc, 0x26, 0x26, 0xff}
	green  = color.RGBA{0x05, 0x96, 0x69, 0xff}
	orange = color.RGBA{0xd9, 0x77, 0x06, 0xff}
	violet = color.RGBA{0x7c, 0x3a, 0xed, 0xff}
	teal   = color.RGBA{0x0e, 0x74, 0x90, 0xff}
)

func (p *panel) empty() bool {
	for _, c := range p.curves {
		for _, y := range c.y {
			if !math.IsNaN(y) {
				return false
			}
		}
	}
	return true
}

func collect(r *report.Report, name string, colour color.RGBA, fill bool, f func(*report.Point) float64) curve {
	c := curve{name: name, colour: colour, fill: fill, bucket: r.BucketS}
	for i := range r.Series {
		c.y = append(c.y, f(&r.Series[i]))
	}
	return c
}

func orNaN(p *float64, scale float64) float64 {
	if p == nil {
		return math.NaN()
	}
	return *p * scale
}

func rates(r *report.Report) panel {
	per := func(n int64) float64 { return float64(n) / r.BucketS }
	return panel{name: "Queries per second", curves: []curve{
		collect(r, "offered", grey, true, func(p *report.Point) float64 { return per(p.Offered) }),
		collect(r, "served", blue, false, func(p *report.Point) float64 { return per(p.Served) }),
		collect(r, "SLO violations", red, true, func(p *report.Point) float64 { return per(p.Violations()) }),
	}}
}

// utility is empty for a run without a bound.
func utility(r *report.Report) panel {
	p := panel{name: "Utility (%)", low: 0, top: 100}
	if r.Bound == nil || len(r.Bound.Windows) == 0 {
		return p
	}
	bound := curve{name: "bound", colour: grey, fill: true, bucket: r.Bound.WindowS}
	for _, w := range r.Bound.Windows {
		y := math.NaN()
		if w.Offered > 0 {
			y = 100 * w.Utility
		}
		bound.y = append(bound.y, y)
	}
	p.curves = []curve{bound, collect(r, "utility", blue, false, func(p *report.Point) float64 {
		return orNaN(p.Utility, 100)
	})}
	return p
}

func accuracy(r *report.Report) panel {
	p := panel{name: "Accuracy (%)", low: math.NaN(), top: 100, curves: []curve{
		collect(r, "profiled", green, false, func(p *report.Point) float64 { return orNaN(p.Accuracy, 100) }),
	}}
	if r.Overall.MeasuredAccuracy != nil {
		p.curves = append(p.curves, collect(r, "measured", orange, false, func(p *report.Point) float64 {
			return orNaN(p.Measured, 100)
		}))
	}
	return p
}

func latency(r *report.Report) panel {
	p := panel{name: "Latency (ms)", curves: []curve{
		collect(r, "p50", blue, false, func(p *report.Point) float64 { return orNaN(p.P50, 1) }),
		collect(r, "p99", violet, false, func(p *report.Point) float64 { return orNaN(p.P99, 1) }),
	}}
	var slos []float64
	for _, a := range r.Apps {
		if a.SLOMS > 0 {
			slos = append(slos, a.SLOMS)
		}
	}
	slices.Sort(slos)
	slos = slices.Compact(slos)
	if len(slos) <= 3 {
		for _, y := range slos {
			p.marks = append(p.marks, mark{name: "SLO", y: y})
		}
	}
	return p
}

func batches(r *report.Report) panel {
	return panel{name: "Mean batch size (items)", curves: []curve{
		collect(r, "", teal, false, func(p *report.Point) float64 { return orNaN(p.MeanBatch, 1) }),
	}}
}

// shareScales gives the panels of a row the same scales.
func shareScales(row []panel, end float64) {
	low, high := math.Inf(1), math.Inf(-1)
	top := 0.0
	for i := range row {
		p := &row[i]
		if !math.IsNaN(p.low) {
			low = min(low, p.low)
		}
		top = p.top
		for _, c := range p.curves {
			for _, y := range c.y {
				if !math.IsNaN(y) {
					low, high = min(low, y), max(high, y)
				}
			}
		}
		for _, m := range p.marks {
			low, high = min(low, m.y), max(high, m.y)
		}
	}
	for i := range row {
		row[i].top = top
		row[i].scale(low, high, end)
	}
}

// scale chooses axes from 0 to end and from somewhat below low to somewhat above high, at whole steps.
func (p *panel) scale(low, high, end float64) {
	if !(high > low) {
		low, high = low-1, high+1
	}
	s := step((high-low)*1.04, 4)
	p.xEnd = end
	p.yLow, p.yHigh = math.Floor(low/s+1e-9)*s, math.Ceil(high/s-1e-9)*s
	if high > p.yHigh-0.04*s {
		p.yHigh += s / 2
	}
	if p.top > 0 {
		p.yHigh = min(p.yHigh, p.top)
	}
}

// plot returns gonum's plot. Only the last row labels the x axis, and only the first column the y axis.
func (p *panel) plot(last, first bool) *gp.Plot {
	g := gp.New()
	g.BackgroundColor = nil
	g.X.Min, g.X.Max, g.Y.Min, g.Y.Max = 0, p.xEnd, p.yLow, p.yHigh
	g.X.Padding, g.Y.Padding = 0, 0
	g.X.Tick.Label, g.Y.Tick.Label = tickStyle(g.X.Tick.Label), tickStyle(g.Y.Tick.Label)
	g.X.Tick.Length, g.Y.Tick.Length = 3, 3
	g.X.Tick.Width, g.Y.Tick.Width = 0, 0 // space without a line
	g.X.Color, g.X.Width = muted, 0.75
	g.Y.Width = 0
	g.X.Tick.Marker = ticks{most: 8}
	g.Y.Tick.Marker = ticks{most: 5}
	if last {
		g.X.Label.Text = "time (s)"
		st := g.X.Label.TextStyle
		g.X.Label.TextStyle = style(9.5, false, muted)
		g.X.Label.TextStyle.XAlign, g.X.Label.TextStyle.YAlign = st.XAlign, st.YAlign
	} else {
		g.X.Tick.Marker = unlabelled{ticks{most: 8}}
	}
	if !first {
		g.Y.Tick.Marker = unlabelled{ticks{most: 5}}
	}
	p.shade(g)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = faint, faint
	grid.Vertical.Width, grid.Horizontal.Width = 0.6, 0.6
	g.Add(grid)
	for _, c := range p.curves {
		c.add(g, p.xEnd)
	}
	for i := range p.stack {
		p.stack[i].add(g, p.xEnd)
	}
	for _, m := range p.marks {
		l, err := plotter.NewLine(plotter.XYs{{X: 0, Y: m.y}, {X: p.xEnd, Y: m.y}})
		if err != nil {
			continue // no finite level
		}
		l.Color, l.Width, l.Dashes = red, 1, []vg.Length{5, 3}
		g.Add(l)
	}
	// Add has widened the ranges to the data. The row's scales count.
	g.X.Min, g.X.Max, g.Y.Min, g.Y.Max = 0, p.xEnd, p.yLow, p.yHigh
	return g
}

// shade draws the spans of time.
func (p *panel) shade(g *gp.Plot) {
	for _, s := range p.spans {
		from, to := min(s.From, p.xEnd), min(s.To, p.xEnd)
		area, err := plotter.NewPolygon(plotter.XYs{
			{X: from, Y: p.yLow}, {X: to, Y: p.yLow}, {X: to, Y: p.yHigh}, {X: from, Y: p.yHigh},
		})
		if err != nil {
			continue
		}
		area.Color, area.Width = shaded, 0
		g.Add(area)
		if !p.spanNames {
			continue
		}
		name, err := plotter.NewLabels(plotter.XYLabels{
			XYs: plotter.XYs{{X: (from + to) / 2, Y: p.yHigh}}, Labels: []string{s.Name},
		})
		if err == nil {
			st := style(9, false, ink)
			st.XAlign, st.YAlign = draw.XCenter, draw.YTop
			name.TextStyle[0] = st
			name.Offset.Y = -3
			g.Add(name)
		}
	}
}

func tickStyle(old draw.TextStyle) draw.TextStyle {
	st := style(9, false, muted)
	st.XAlign, st.YAlign = old.XAlign, old.YAlign
	return st
}

// add draws the known stretches of the curve as steps: the value of a bucket holds for the whole bucket.
func (c *curve) add(g *gp.Plot, end float64) {
	for from := 0; from < len(c.y); {
		if math.IsNaN(c.y[from]) || math.IsInf(c.y[from], 0) {
			from++
			continue
		}
		to := from
		var xy plotter.XYs
		for to < len(c.y) && !math.IsNaN(c.y[to]) && !math.IsInf(c.y[to], 0) {
			x := float64(to) * c.bucket
			if x >= end-1e-9 {
				to = len(c.y)
				break
			}
			xy = append(xy, plotter.XY{X: x, Y: c.y[to]}, plotter.XY{X: min(x+c.bucket, end), Y: c.y[to]})
			to++
		}
		from = to
		l, err := plotter.NewLine(xy)
		if err != nil {
			continue
		}
		l.Color, l.Width = c.colour, 1.4
		if c.fill {
			l.FillColor = c.tint()
			l.Width = 0.9
		}
		g.Add(l)
	}
}

func (c *curve) tint() color.Color {
	return color.NRGBA{R: c.colour.R, G: c.colour.G, B: c.colour.B, A: 0x48}
}

// head draws the panel's name and its legend in one line above the data.
func (p *panel) head(c draw.Canvas, data vg.Rectangle) {
	if p.stack != nil {
		p.stackHead(c, data)
		return
	}
	y := data.Max.Y + 7
	name := style(10, true, ink)
	c.FillText(name, vg.Point{X: data.Min.X, Y: y}, p.name)
	entry := style(9.5, false, ink)
	const sample, gap, space = vg.Length(16), vg.Length(4), vg.Length(14)
	x := data.Max.X
	back := func(text string, drawSample func(left vg.Length)) {
		if text == "" {
			return
		}
		x -= entry.Width(text)
		c.FillText(entry, vg.Point{X: x, Y: y}, text)
		x -= gap + sample
		drawSample(x)
		x -= space
	}
	seen := ""
	for i := len(p.marks) - 1; i >= 0; i-- {
		if p.marks[i].name == seen {
			continue
		}
		seen = p.marks[i].name
		back(seen, func(left vg.Length) {
			c.StrokeLine2(draw.LineStyle{
				Color: red, Width: 1, Dashes: []vg.Length{5, 3},
			}, left, y+3.2, left+sample, y+3.2)
		})
	}
	for i := len(p.curves) - 1; i >= 0; i-- {
		k := &p.curves[i]
		back(k.name, func(left vg.Length) {
			if k.fill {
				c.FillPolygon(k.tint(), []vg.Point{
					{X: left, Y: y - 0.5}, {X: left + sample, Y: y - 0.5}, {X: left + sample, Y: y + 7},
					{X: left, Y: y + 7},
				})
				c.StrokeLine2(draw.LineStyle{Color: k.colour, Width: 0.9}, left, y+7, left+sample, y+7)
				return
			}
			c.StrokeLine2(draw.LineStyle{Color: k.colour, Width: 1.8}, left, y+3.2, left+sample, y+3.2)
		})
	}
}
