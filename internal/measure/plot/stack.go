package plot

import (
	"cmp"
	"image/color"
	"math"
	"slices"
	"strings"

	gp "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/sluice-serving/sluice/serving/report"
)

// layer is one share of a whole over time, from low to high in every bucket; NaN where there is no whole.
type layer struct {
	name      string
	colour    color.RGBA
	low, high []float64
	bucket    float64 // s
}

// ramp has colours from the least accurate variant to the most accurate, dark to light. It is readable without colour.
var ramp = []color.RGBA{
	{0x44, 0x01, 0x54, 0xff}, {0x3b, 0x52, 0x8b, 0xff}, {0x21, 0x91, 0x8c, 0xff}, {0x5e, 0xc9, 0x62, 0xff},
	{0xfd, 0xe7, 0x25, 0xff},
}

func rampAt(i, n int) color.RGBA {
	if n < 2 {
		return ramp[2]
	}
	x := float64(i) / float64(n-1) * float64(len(ramp)-1)
	k := min(int(x), len(ramp)-2)
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + (float64(b)-float64(a))*(x-float64(k)))) }
	a, b := ramp[k], ramp[k+1]
	return color.RGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 0xff}
}

// maxLayers is the most variants of a figure. The least used of further ones are left white.
const maxLayers = 16

// variantPanels shows the shares of variants over time, one panel for each report. A variant has the same colour in all
// of them. It returns nil when no report has variants.
func variantPanels(reports []*report.Report, end float64) []panel {
	type kind struct {
		name     string
		accuracy float64
		served   int64
	}
	var kinds []kind
	for _, r := range reports {
		for _, v := range r.Variants {
			i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == v.Name })
			if i < 0 {
				i = len(kinds)
				kinds = append(kinds, kind{name: v.Name})
			}
			kinds[i].accuracy = max(kinds[i].accuracy, v.Accuracy)
			kinds[i].served += v.Served
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	slices.SortFunc(kinds, func(a, b kind) int {
		return cmp.Or(cmp.Compare(b.served, a.served), cmp.Compare(a.name, b.name))
	})
	kinds = kinds[:min(len(kinds), maxLayers)]
	slices.SortFunc(kinds, func(a, b kind) int {
		return cmp.Or(cmp.Compare(a.accuracy, b.accuracy), cmp.Compare(a.name, b.name))
	})
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	short := shorten(names)
	row := make([]panel, len(reports))
	for i, r := range reports {
		p := &row[i]
		*p = panel{name: "Answered by variant (% of served)", xEnd: end, yHigh: 100}
		below := make([]float64, len(r.Series))
		for k, name := range names {
			at := slices.IndexFunc(r.Variants, func(v report.VariantUse) bool { return v.Name == name })
			l := layer{
				name: short[k], colour: rampAt(k, len(names)), bucket: r.BucketS, low: make([]float64, len(r.Series)),
				high: make([]float64, len(r.Series)),
			}
			for s := range r.Series {
				total, part := int64(0), int64(0)
				for v, n := range r.Series[s].ByVariant {
					total += n
					if v == at {
						part = n
					}
				}
				l.low[s], l.high[s] = math.NaN(), math.NaN()
				if total > 0 {
					l.low[s] = below[s]
					below[s] += 100 * float64(part) / float64(total)
					l.high[s] = below[s]
				}
			}
			p.stack = append(p.stack, l)
		}
	}
	return row
}

// shorten removes the common prefix of names up to a separator: a legend only needs the difference.
func shorten(names []string) []string {
	if len(names) < 2 {
		return names
	}
	common := names[0]
	for _, n := range names[1:] {
		for !strings.HasPrefix(n, common) {
			common = common[:len(common)-1]
		}
	}
	cut := strings.LastIndexAny(common, "-_/: ") + 1
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = n[cut:]
		if r := []rune(out[i]); len(r) > 18 {
			out[i] = string(r[:17]) + "…"
		}
	}
	return out
}

// add draws the known stretches of the layer as filled steps.
func (l *layer) add(g *gp.Plot, end float64) {
	for from := 0; from < len(l.low); {
		if math.IsNaN(l.low[from]) {
			from++
			continue
		}
		to := from
		var lower, upper plotter.XYs
		drawn := false
		for ; to < len(l.low) && !math.IsNaN(l.low[to]) && float64(to)*l.bucket < end-1e-9; to++ {
			a, b := float64(to)*l.bucket, min(float64(to+1)*l.bucket, end)
			lower = append(lower, plotter.XY{X: a, Y: l.low[to]}, plotter.XY{X: b, Y: l.low[to]})
			upper = append(upper, plotter.XY{X: a, Y: l.high[to]}, plotter.XY{X: b, Y: l.high[to]})
			drawn = drawn || l.high[to] > l.low[to]
		}
		if to == from {
			return
		}
		from = to
		if !drawn {
			continue
		}
		slices.Reverse(upper)
		poly, err := plotter.NewPolygon(append(lower, upper...))
		if err != nil {
			continue
		}
		poly.Color, poly.Width = l.colour, 0
		g.Add(poly)
	}
}

// stackHead draws the panel's name and the legend in a line of its own, as there may be many variants.
func (p *panel) stackHead(c draw.Canvas, data vg.Rectangle) {
	c.FillText(style(10, true, ink), vg.Point{X: data.Min.X, Y: data.Max.Y + 20}, p.name)
	const sample, gap = vg.Length(9), vg.Length(4)
	y := data.Max.Y + 6
	entry, space := style(9, false, ink), vg.Length(12)
	width := func() vg.Length {
		total := -space
		for _, l := range p.stack {
			total += sample + gap + entry.Width(l.name) + space
		}
		return total
	}
	if width() > data.Max.X-data.Min.X {
		entry, space = style(7.5, false, ink), 6
	}
	x := data.Min.X
	for _, l := range p.stack {
		w := sample + gap + entry.Width(l.name)
		if x+w > data.Max.X {
			c.FillText(entry, vg.Point{X: x, Y: y}, "…")
			return
		}
		c.FillPolygon(l.colour, []vg.Point{
			{X: x, Y: y - 1}, {X: x + sample, Y: y - 1}, {X: x + sample, Y: y + 7}, {X: x, Y: y + 7},
		})
		c.FillText(entry, vg.Point{X: x + sample + gap, Y: y}, l.name)
		x += w + space
	}
}
