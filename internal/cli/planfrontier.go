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

// plotFrontiers draws the frontiers into a folder.
func plotFrontiers(dir string, o *host.Opened, r *planning.Report) ([]string, error) {
	var list []plot.Frontier
	for n := range r.Frontiers {
		v := &r.Frontiers[n]
		f := plot.Frontier{Name: title("", v)}
		for _, x := range v.Points {
			f.Points = append(f.Points, plot.FrontierPoint{
				Throughput: x.Throughput, Accuracy: x.Accuracy, Apps: x.Apps, Shares: x.Shares,
			})
		}
		if len(f.Points) > 0 {
			list = append(list, f)
		}
	}
	title := "What this fleet gives at every throughput"
	if len(list) == 1 {
		title += ", system " + list[0].Name
	}
	legend := plot.Legend{Demand: r.Frontiers[0].Demand, Apps: o.AppNames(), Variants: o.VariantNames()}
	for _, x := range o.Spec().Variants {
		legend.Accuracies = append(legend.Accuracies, x.Accuracy)
	}
	fig, err := plot.NewFrontier(title, legend, list)
	if err != nil {
		return nil, err
	}
	names := []string{filepath.Join(dir, "frontier.png"), filepath.Join(dir, "frontier.svg")}
	if err := files.Write(names[0], fig.PNG); err != nil {
		return nil, err
	}
	return names, files.Write(names[1], fig.SVG)
}
