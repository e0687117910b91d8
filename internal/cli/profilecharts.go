package cli

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/files"
	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
)

// chartColumns is how many variants stand beside each other in a chart.
const chartColumns = 3

// drawProfile draws charts of each device type of a profile file: throughput over latency, a line for each number of
// batches at once and a point for each batch size, as Scrooge's Figure 5 (§3.2); and accuracy over machine time, where
// second answers may raise it.
func drawProfile(e *Env, path, folder string) error {
	f, err := profiler.ReadFile(path)
	if err != nil {
		return fault.Wrap(fault.Config, err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for n, d := range profiledDevices(f) {
		draw := func(name string, c *plot.Chart) error {
			if n > 0 {
				name = fmt.Sprintf("%s-%d", name, n+1)
			}
			to := filepath.Join(folder, name+".png")
			fmt.Fprintf(e.Stdout, "%s: %s\n", d, to)
			return files.Write(to, c.PNG)
		}
		if err := draw("profile", profileChart(f, d)); err != nil {
			return err
		}
		if len(f.Confidences) > 0 {
			if err := draw("accuracy", accuracyChart(f, d)); err != nil {
				return err
			}
		}
	}
	printTradeoffs(e, f)
	return nil
}

func profiledDevices(f *profiler.File) (out []string) {
	for _, p := range f.Points {
		if !slices.Contains(out, p.DeviceType) {
			out = append(out, p.DeviceType)
		}
	}
	return out
}

// accuracyChart draws the accuracy that machine time gives, with and without second answers.
func accuracyChart(f *profiler.File, device string) *plot.Chart {
	panel := plot.Panel{Name: "accuracy (%)", XName: "machine time per query (ms)", Low: math.NaN(), High: math.NaN()}
	for _, answers := range []profiler.Answers{profiler.Twice, profiler.Once} {
		line := plot.Line{Name: [...]string{"one answer each", "with second answers"}[answers]}
		for _, x := range f.Tradeoffs(device, answers) {
			line.X, line.Y = append(line.X, x.Time), append(line.Y, 100*x.Accuracy)
		}
		panel.Lines = append(panel.Lines, line)
	}
	return &plot.Chart{Title: "Accuracy over machine time, " + device, Panels: []plot.Panel{panel}}
}

func profileChart(f *profiler.File, device string) *plot.Chart {
	c := &plot.Chart{Title: "Throughput over latency by batch size, " + device}
	points := slices.Clone(f.Points)
	slices.SortFunc(points, func(a, b profiler.Point) int {
		return cmp.Or(cmp.Compare(a.Variant, b.Variant), cmp.Compare(a.Concurrency, b.Concurrency),
			cmp.Compare(a.Mean, b.Mean))
	})
	for _, p := range points {
		if p.DeviceType != device || p.Interpolated {
			continue
		}
		if n := len(c.Panels); n == 0 || c.Panels[n-1].Name != p.Variant+", items/s" {
			c.Panels = append(c.Panels, plot.Panel{
				Name: p.Variant + ", items/s", XName: "latency (ms)", Low: 0, High: math.NaN(),
			})
		}
		panel := &c.Panels[len(c.Panels)-1]
		name := fmt.Sprintf("%d at once", p.Concurrency)
		if n := len(panel.Lines); n == 0 || panel.Lines[n-1].Name != name {
			panel.Lines = append(panel.Lines, plot.Line{Name: name})
		}
		line := &panel.Lines[len(panel.Lines)-1]
		line.X, line.Y = append(line.X, p.Mean/1e3), append(line.Y, float64(p.Batch*p.Concurrency)/p.Mean*1e6)
	}
	c.Columns = max(1, min(chartColumns, len(c.Panels)))
	return c
}
