package kairos

import (
	"github.com/sluice-serving/sluice/measure/report/plot"
	"github.com/sluice-serving/sluice/reproduce"
	"github.com/sluice-serving/sluice/sim/experiment"
	"github.com/sluice-serving/sluice/systems"
)

const throughputRow = "throughput"

// addThroughput notes what was measured with every seed, and its bounds where they are known.
func addThroughput(o *reproduce.Outcome, figure, system string, setting map[string]string, got []experiment.Throughput) {
	var rates, low, high []float64
	for i := range got {
		rates = append(rates, got[i].Rate)
		if got[i].Low > 0 {
			low = append(low, got[i].Low)
		}
		if got[i].High > 0 {
			high = append(high, got[i].High)
		}
	}
	o.AddRow(row(figure, system, throughputRow, "queries/s", setting), rates...)
	o.AddRow(row(figure, system, "known carried", "queries/s", setting), low...)
	o.AddRow(row(figure, system, "known not carried", "queries/s", setting), high...)
}

// addMachines notes pools, by seed or one for all seeds, a column for each type.
func addMachines(o *reproduce.Outcome, figure, system string, setting map[string]string, pools ...pool) {
	for t := range machineTypes {
		var count []float64
		for _, p := range pools {
			count = append(count, float64(p[t]))
		}
		o.AddRow(row(figure, system, machineTypes[t].Name, "", setting), count...)
	}
}

// comparedRules for sending queries that pools are compared under (§7): Ribbon's, DRS, CLKWRK and Kairos's own, as far as there
// are systems of these names.
func comparedRules() []string {
	var out []string
	for _, name := range []string{"fcfs", "drs", "clkwrk", "kairos"} {
		if _, err := systems.Get(name); err == nil {
			out = append(out, name)
		}
	}
	return out
}

// addChart adds a chart of a figure; its name in files is figure-NAME.
func addChart(o *reproduce.Outcome, name, title string, columns int, panels ...plot.Panel) {
	o.AddChart(name, "Kairos, Figure "+title, columns, panels...)
}
