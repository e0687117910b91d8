package scrooge

import (
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// published5 has what the text says of Figure 5, by batch size and concurrency.
var published5 = map[[2]int]float64{{1, 1}: 40.98, {8, 1}: 67.52, {8, 4}: 77.51}

// figure5 shows the modelled profile beside the points that the text names.
func figure5(run *runner) error {
	var ssd *model
	for _, s := range run.graph("traffic").stages {
		if s.model.name == "ssd-inception" {
			ssd = s.model
		}
	}
	run.Report(func(o *reproduce.Outcome) error {
		p := plot.Panel{Name: "items/s", XName: "worst latency (ms)", Low: 0, High: math.NaN()}
		for _, e := range concurrencies {
			line := plot.Line{Name: fmt.Sprintf("concurrency %d", e)}
			for b := 1; b <= ssd.largest; b *= 2 {
				rate := ssd.throughput(b, e)
				r := row("5", line.Name, "throughput", "items/s",
					reproduce.Setting("model", ssd.name, "type", machineTypes[p100].name, "batch", b))
				if v, ok := published5[[2]int{b, e}]; ok {
					r = r.WithPublished(v, "§3.2")
				}
				o.AddRow(r, rate)
				line.X, line.Y = append(line.X, ssd.latencyMS(b, e)+1000*float64(b)/rate), append(line.Y, rate)
			}
			p.Lines = append(p.Lines, line)
		}
		addChart(o, "5", "5: modelled profile of SSD-Inception on a P100", 1, p)
		return nil
	})
	return nil
}
