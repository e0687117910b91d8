package plot

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"

	gp "gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/sluice-serving/sluice/serving/report"
)

// MaxReports is the most reports in one figure.
const MaxReports = 4

// Figure is a drawing made by New or NewApps.
type Figure struct {
	title         string
	names         []string
	panels        [][]panel // by row, then by report
	width, height vg.Length
	notes         []note   // below the title
	results       []string // below the names
}

// New draws the time series of reports in columns under their names: rates, utility beside its bound, accuracy,
// latency, batch sizes and variants. All columns have the same scales. title may be empty. It returns an error unless
// there are 1 to MaxReports reports with a time series, and as many names.
func New(title string, names []string, reports []*report.Report) (*Figure, error) {
	if len(reports) == 0 || len(reports) > MaxReports {
		return nil, fmt.Errorf("%d reports, want between 1 and %d in one figure", len(reports), MaxReports)
	}
	if len(names) != len(reports) {
		return nil, fmt.Errorf("%d names for %d reports, want as many", len(names), len(reports))
	}
	end := 0.0
	for i, r := range reports {
		if r == nil || !(r.BucketS > 0) {
			return nil, fmt.Errorf("report %d (%s) has no time series", i+1, names[i])
		}
		end = max(end, r.DurationS)
		if n := len(r.Series); n > 0 {
			last := r.Series[n-1].AtS
			// A single bucket after the end of the load has the few answers that were still under way. It would only
			// draw a cliff.
			if last+1e-9 < r.DurationS || last > r.DurationS+r.BucketS/2 || r.DurationS <= 0 {
				end = max(end, last+r.BucketS)
			}
		}
	}
	if end <= 0 {
		return nil, errors.New("the reports cover no time; nothing to draw")
	}
	f := &Figure{title: title, names: names}
	for _, build := range []func(*report.Report) panel{rates, utility, accuracy, latency, batches} {
		row := make([]panel, len(reports))
		empty := true
		for i, r := range reports {
			row[i] = build(r)
			empty = empty && row[i].empty()
		}
		if !empty {
			f.panels = append(f.panels, row)
		}
	}
	for _, row := range f.panels {
		shareScales(row, end)
	}
	if row := variantPanels(reports, end); row != nil {
		f.panels = append(f.panels, row)
	}
	columns := vg.Length(len(reports))
	f.width = 60 + columns*max(330, 640/columns)
	f.height = 60 + vg.Length(len(f.panels))*150
	return f, nil
}

// PNG writes the figure to w, at 144 dots per inch.
func (f *Figure) PNG(w io.Writer) error { return f.drawing().png(w) }

// SVG writes the figure to w as a scalable drawing.
func (f *Figure) SVG(w io.Writer) error { return f.drawing().svg(w) }

var (
	ink   = color.RGBA{0x1f, 0x29, 0x37, 0xff}
	faint = color.RGBA{0xe5, 0xe7, 0xeb, 0xff}
	muted = color.RGBA{0x6b, 0x72, 0x80, 0xff}

	shaded = color.RGBA{0xf3, 0xf4, 0xf6, 0xff}
)

func style(size vg.Length, bold bool, c color.Color) text.Style {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	if bold {
		f.Weight = 3 // bold, on the scale of x/image/font that gonum uses
	}
	return text.Style{Color: c, Font: f, Handler: gp.DefaultTextHandler}
}

func (f *Figure) drawing() drawing {
	return drawing{f.width, f.height, func(c draw.Canvas) error { f.draw(c); return nil }}
}

// header is the space above each panel for its name and legend, so that the legend never covers data.
const header = vg.Length(34)

func (f *Figure) draw(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Path())
	top := vg.Length(14)
	if f.title != "" {
		st := style(14, true, ink)
		c.FillText(st, vg.Point{X: 12, Y: c.Max.Y - 24}, f.title)
		top += 22
	}
	if len(f.notes) > 0 {
		f.drawNotes(c, c.Max.Y-44)
		top += vg.Length(len(f.notes))*noteHeight + 6
	}
	if len(f.names) > 1 {
		top += 16
	}
	if f.results != nil {
		top += 26
	}
	rows, cols := len(f.panels), len(f.names)
	plots := make([][]*gp.Plot, rows)
	for i, row := range f.panels {
		plots[i] = make([]*gp.Plot, cols)
		for k := range row {
			plots[i][k] = row[k].plot(i == rows-1, k == 0)
		}
	}
	tiles := draw.Tiles{
		Rows: rows, Cols: cols, PadTop: top + header - 14, PadBottom: 8, PadLeft: 8, PadRight: 16, PadX: 14,
		PadY: header,
	}
	canvases := gp.Align(plots, tiles, c)
	for i, row := range plots {
		for k, p := range row {
			p.Draw(canvases[i][k])
			data := p.DataCanvas(canvases[i][k])
			f.panels[i][k].head(c, data.Rectangle)
			if i == 0 && len(f.names) > 1 {
				st := style(11.5, true, ink)
				st.XAlign = draw.XCenter
				at := vg.Point{X: (data.Min.X + data.Max.X) / 2, Y: data.Max.Y + header - 4}
				if f.results != nil {
					small := style(10, false, muted)
					small.XAlign = draw.XCenter
					at.Y += 12
					c.FillText(small, at, f.results[k])
					at.Y += 14
				}
				c.FillText(st, at, f.names[k])
			}
		}
	}
}

// ticks places at most about most ticks at multiples of 1, 2 or 5 times a power of ten.
type ticks struct{ most int }

func step(span float64, most int) float64 {
	raw := span / float64(most)
	if !(raw > 0) {
		return 1
	}
	base := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5} {
		if base*m >= raw*(1-1e-9) {
			return base * m
		}
	}
	return base * 10
}

// Ticks implements gonum's plot.Ticker.
func (t ticks) Ticks(low, high float64) []gp.Tick {
	s := step(high-low, t.most)
	digits := 0
	if s < 1 {
		digits = int(math.Ceil(-math.Log10(s) - 1e-9))
	}
	var out []gp.Tick
	for i := math.Ceil(low/s - 1e-6); i*s <= high+s*1e-6; i++ {
		out = append(out, gp.Tick{Value: i * s, Label: label(i*s, digits)})
	}
	return out
}

func label(v float64, digits int) string {
	s := fmt.Sprintf("%.*f", digits, math.Abs(v))
	whole := len(s)
	if digits > 0 {
		whole -= digits + 1
	}
	for i := whole - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if v < 0 && s != "0" {
		s = "-" + s
	}
	return s
}

// unlabelled draws the grid lines of ticks without their labels.
type unlabelled struct{ gp.Ticker }

// Ticks implements gonum's plot.Ticker.
func (b unlabelled) Ticks(low, high float64) []gp.Tick {
	out := b.Ticker.Ticks(low, high)
	for i := range out {
		out[i].Label = " " // an empty label would make a minor tick, without a grid line
	}
	return out
}
