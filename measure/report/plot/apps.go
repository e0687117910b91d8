package plot

import (
	"fmt"
	"math"

	"gonum.org/v1/plot/vg"

	"github.com/sluice-serving/sluice/measure/report"
)

// NewApps is New for runs of several apps that share machines: it shows what each app asked for, and which variants
// answered it. All reports must have the same apps, with time series.
func NewApps(title string, names []string, reports []*report.Report) (*Figure, error) {
	f, err := New(title, names, reports)
	if err != nil {
		return nil, err
	}
	end := f.panels[0][0].xEnd
	rows := [][]panel{f.panels[0], offeredByApp(reports, end)}
	for _, build := range []func(*report.Report) panel{violations, accuracyByApp} {
		row := make([]panel, len(reports))
		for i, r := range reports {
			row[i] = build(r)
		}
		shareScales(row, end)
		rows = append(rows, row)
	}
	for a := range reports[0].Apps {
		of := make([]*report.Report, len(reports))
		for i, r := range reports {
			if a >= len(r.Apps) || r.Apps[a].Name != reports[0].Apps[a].Name {
				return nil, fmt.Errorf("report %d has other apps", i+1)
			}
			of[i] = &report.Report{BucketS: r.BucketS, Series: r.Apps[a].Series, Variants: r.Apps[a].Variants}
		}
		if row := variantPanels(of, end); row != nil {
			for i := range row {
				row[i].name = fmt.Sprintf("%s: answered by (%%)", reports[0].Apps[a].Name)
			}
			rows = append(rows, row)
		}
	}
	f.panels = rows
	f.height = 60 + vg.Length(len(f.panels))*135
	return f, nil
}

// appColours are those of apps, in their order.
var appColours = ramp[1:]

// offeredByApp stacks what the apps ask for.
func offeredByApp(reports []*report.Report, end float64) []panel {
	row := make([]panel, len(reports))
	most := 0.0
	for i, r := range reports {
		p := &row[i]
		*p = panel{name: "Asked for, by app (queries/s)", xEnd: end}
		below := make([]float64, len(r.Series))
		for a := range r.Apps {
			x := &r.Apps[a]
			l := layer{
				name: x.Name, colour: appColours[a%len(appColours)], bucket: r.BucketS,
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
		row[i].yHigh = most * 1.05
	}
	return row
}

// violations is what each app missed.
func violations(r *report.Report) panel {
	p := panel{name: "Violations (%)"}
	for a := range r.Apps {
		x := &r.Apps[a]
		p.curves = append(p.curves, byApp(r, a, func(s *report.Point) float64 {
			return 100 * float64(s.Violations()) / float64(max(s.Offered, 1))
		}))
		p.curves[a].name = x.Name
	}
	return p
}

// accuracyByApp is how accurate the answers of each app are.
func accuracyByApp(r *report.Report) panel {
	p := panel{name: "Accuracy of answers (%)", low: math.NaN(), top: 100}
	for a := range r.Apps {
		p.curves = append(p.curves, byApp(r, a, func(s *report.Point) float64 { return orNaN(s.Accuracy, 100) }))
	}
	return p
}

func byApp(r *report.Report, a int, f func(*report.Point) float64) curve {
	x := &r.Apps[a]
	c := curve{name: x.Name, colour: appColours[a%len(appColours)], bucket: r.BucketS}
	for i := range x.Series {
		c.y = append(c.y, f(&x.Series[i]))
	}
	return c
}
