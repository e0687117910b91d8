package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/files"
	"github.com/sluice-serving/sluice/internal/host/planning"
	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/internal/measure/quantity"
)

// printFrontiers writes the points of each frontier.
func printFrontiers(w io.Writer, r *planning.Report) error {
	low, high := 1.0, 0.0
	for _, v := range r.Frontiers {
		for _, x := range v.Points {
			low, high = min(low, x.Accuracy), max(high, x.Accuracy)
		}
	}
	for n := range r.Frontiers {
		v := &r.Frontiers[n]
		if n > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s\n\n", title("system ", v))
		if len(v.Points) == 0 {
			fmt.Fprintf(w, "no plan: %s\n", cmp.Or(v.Error, "nothing of this mix can be carried"))
			continue
		}
		rows := [][]string{{"OF DEMAND", "THROUGHPUT", "ACCURACY", "", "GAP", "UTILITY", "AT MOST", "$/h AT LEAST"}}
		for _, x := range v.Points {
			gap := "-"
			if x.Gap != nil {
				gap = quantity.Percent(*x.Gap)
			}
			rows = append(rows, []string{
				quantity.Multiple(x.Multiple), quantity.Rate(x.Throughput), quantity.Accuracy(x.Accuracy),
				meter(x.Accuracy, low, high), gap, "-", "-", "-",
			})
			if f, row := x.Fluid, rows[len(rows)-1]; f != nil {
				row[5], row[6] = quantity.Percent(*x.Utility), quantity.Percent(f.Utility)
				if f.CostPerHour != nil {
					row[7] = quantity.Dollars(*f.CostPerHour)
				}
			}
		}
		if err := columns(w, "rrrlrrrr", rows); err != nil {
			return err
		}
	}
	return nil
}

// title returns the heading of a frontier.
func title(before string, v *planning.Frontier) string {
	if v.WhatIf == "" {
		return before + v.System
	}
	return before + v.System + ", " + v.WhatIf
}

// meter draws the position of x between low and high.
func meter(x, low, high float64) string {
	const cells = 24
	if !(high > low) {
		return ""
	}
	return strings.Repeat("#", 1+int(math.Round((x-low)/(high-low)*(cells-1))))
}

// savePlan writes a report as JSON, and the files that save writes, into a folder. It returns their names.
func savePlan(dir string, r any, save func(dir string) ([]string, error)) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	names := []string{filepath.Join(dir, "plan.json")}
	if err := files.Write(names[0], func(w io.Writer) error { return writeJSON(w, r) }); err != nil {
		return nil, err
	}
	if save == nil {
		return names, nil
	}
	more, err := save(dir)
	return append(names, more...), err
}

// plotFrontiers draws the frontiers into a folder: accuracy over throughput, and of a single one that of each app.
func plotFrontiers(dir string, o *host.Opened, r *planning.Report) ([]string, error) {
	c := plot.Chart{Title: "What this fleet gives at every throughput"}
	p := plot.Panel{Name: "Accuracy (%)", XName: "queries served per second", Low: math.NaN(), High: math.NaN()}
	names := o.AppNames()
	apps := p
	apps.Name, apps.Lines = "Accuracy of each app (%)", make([]plot.Line, len(names))
	for n := range r.Frontiers {
		v := &r.Frontiers[n]
		f := plot.Line{Name: title("", v)}
		for _, x := range v.Points {
			f.X, f.Y = append(f.X, x.Throughput), append(f.Y, 100*x.Accuracy)
			for a := range names {
				l := &apps.Lines[a]
				l.Name, l.X, l.Y = names[a], append(l.X, x.Throughput), append(l.Y, 100*x.Apps[a])
			}
		}
		if len(v.Points) > 0 {
			p.Lines = append(p.Lines, f)
		}
	}
	c.Panels = []plot.Panel{p}
	if len(r.Frontiers) == 1 && len(names) > 1 {
		c.Panels = append(c.Panels, apps)
	}
	return drawn(dir, "frontier", &c)
}
