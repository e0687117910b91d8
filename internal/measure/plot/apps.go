package plot

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/sluice-serving/sluice/serving/report"
)

// Story is what a figure of apps says in words.
type Story struct {
	Title string
	Lines []string // below the title
	// Apps says what each app does, in the order of the reports.
	Apps []string
	// Columns are the names of the reports.
	Columns []string
	// Spans are stretches of time in which something happens. They are shaded.
	Spans []Span
	// Ladders are the apps of which it is shown which variants answered.
	Ladders []string
}

// Span is a stretch of time, in seconds.
type Span struct {
	From, To float64
	Name     string
}

// appColours are those of apps, in their order. They differ from those of variants.
var appColours = []color.RGBA{blue, orange, violet, green, teal, red}

func appColour(a int) color.RGBA { return appColours[a%len(appColours)] }

// NewApps draws runs of several apps that share machines, in columns: what each app asked for, what was missed, and
// which variants answered. Each column says below its name what was missed in all, and how accurate the answers were.
// All reports must have the same apps, with time series.
func NewApps(s Story, reports []*report.Report) (*Figure, error) {
	f, err := New(s.Title, s.Columns, reports)
	if err != nil {
		return nil, err
	}
	for i, r := range reports {
		if !slices.EqualFunc(r.Apps, reports[0].Apps, func(a, b report.App) bool { return a.Name == b.Name }) {
			return nil, fmt.Errorf("report %d has other apps", i+1)
		}
		f.results = append(f.results, result(&r.Overall))
	}
	for _, line := range s.Lines {
		f.notes = append(f.notes, note{text: line})
	}
	for a, about := range s.Apps {
		f.notes = append(f.notes, note{appColour(a), reports[0].Apps[a].Name, about})
	}
	end := f.panels[0][0].xEnd
	f.panels = [][]panel{offeredByApp(reports, end), missed(reports, end)}
	f.panels = append(f.panels, ladders(s.Ladders, reports, end)...)
	for _, row := range f.panels {
		for i := range row {
			row[i].spans = s.Spans
		}
	}
	for i := range f.panels[0] {
		f.panels[0][i].spanNames = true
	}
	f.height = 86 + vg.Length(len(f.notes))*noteHeight + vg.Length(len(f.panels))*138
	return f, nil
}

// result is one line about a run.
func result(s *report.Summary) string {
	out := fmt.Sprintf("%.2f %% of the queries late or unanswered", 100*s.ViolationRatio)
	if s.EffectiveAccuracy != nil {
		out += fmt.Sprintf(", answers %.1f %% accurate", 100**s.EffectiveAccuracy)
	}
	return out
}

// ladders shows which variants of apps answered, a row for each app. A variant has the same colour in all of them.
func ladders(apps []string, reports []*report.Report, end float64) (rows [][]panel) {
	var of []*report.Report
	var names []string
	for a := range reports[0].Apps {
		if slices.Contains(apps, reports[0].Apps[a].Name) {
			names = append(names, reports[0].Apps[a].Name)
			for _, r := range reports {
				x := &r.Apps[a]
				of = append(of, &report.Report{BucketS: r.BucketS, Series: x.Series, Variants: x.Variants})
			}
		}
	}
	panels := variantPanels(of, end)
	for i := range panels {
		panels[i].name = names[i/len(reports)] + ": which model answers (% of the answers)"
		for k := range panels[i].stack {
			tellAccuracy(&panels[i].stack[k], of)
		}
	}
	for row := range slices.Chunk(panels, len(reports)) {
		rows = append(rows, row)
	}
	return rows
}

// tellAccuracy adds to the name of a variant how accurate it is.
func tellAccuracy(l *layer, of []*report.Report) {
	for _, r := range of {
		v := slices.IndexFunc(r.Variants, func(v report.VariantUse) bool {
			return strings.HasSuffix(v.Name, l.name) && v.Accuracy > 0
		})
		if v >= 0 {
			l.name = fmt.Sprintf("%s, %.0f %% right", l.name, 100*r.Variants[v].Accuracy)
			return
		}
	}
}

// offeredByApp stacks what the apps ask for.
func offeredByApp(reports []*report.Report, end float64) []panel {
	row := make([]panel, len(reports))
	most := 0.0
	for i, r := range reports {
		p := &row[i]
		*p = panel{name: "Load (queries per second)", xEnd: end}
		below := make([]float64, len(r.Series))
		for a := range r.Apps {
			x := &r.Apps[a]
			l := layer{
				name: x.Name, colour: appColour(a), bucket: r.BucketS,
				low: make([]float64, len(r.Series)), high: make([]float64, len(r.Series)),
			}
			for s := range r.Series {
				l.low[s] = below[s]
				if s < len(x.Series) {
					below[s] += float64(x.Series[s].Offered) / r.BucketS
				}
				l.high[s] = below[s]
				most = max(most, below[s])
			}
			p.stack = append(p.stack, l)
		}
	}
	for i := range row {
		row[i].yHigh = most * 1.3 // the names of the spans stand above the data
	}
	return row
}

// missed is the share of queries that were late or not answered.
func missed(reports []*report.Report, end float64) []panel {
	row := make([]panel, len(reports))
	for i, r := range reports {
		row[i] = panel{name: "Promises broken: late or unanswered (% of the queries)", curves: []curve{
			collect(r, "", red, true, func(p *report.Point) float64 {
				return 100 * float64(p.Violations()) / float64(max(p.Offered, 1))
			}),
		}}
	}
	shareScales(row, end)
	for i := range row { // one query more or less is not to fill the panel
		row[i].yLow, row[i].yHigh = 0, math.Max(row[i].yHigh, 10)
		row[i].yHigh = math.Min(row[i].yHigh, 100)
	}
	return row
}

// note is a line below the title, with a square of a colour and a bold word before it where it has a word.
type note struct {
	colour     color.RGBA
	word, text string
}

const noteHeight = vg.Length(15)

// drawNotes draws the notes from y down.
func (f *Figure) drawNotes(c draw.Canvas, y vg.Length) {
	const left, sample, gap = vg.Length(12), vg.Length(9), vg.Length(5)
	plain, bold := style(10, false, ink), style(10, true, ink)
	for _, n := range f.notes {
		x := left
		if n.word != "" {
			c.FillPolygon(n.colour, []vg.Point{
				{X: x, Y: y - 1}, {X: x + sample, Y: y - 1}, {X: x + sample, Y: y + 8}, {X: x, Y: y + 8},
			})
			x += sample + gap
			c.FillText(bold, vg.Point{X: x, Y: y}, n.word)
			x += bold.Width(n.word) + gap
		}
		c.FillText(plain, vg.Point{X: x, Y: y}, n.text)
		y -= noteHeight
	}
}
