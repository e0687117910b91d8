package kairos

import (
	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

const throughputRow = "throughput"

// addThroughput adds the throughput of every seed, and its bounds where they are known.
func addThroughput(o *reproduce.Outcome, figure, system string, setting map[string]string,
	got []experiment.Throughput) {
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

// addMachines adds the machines of pools, a row for each type. pools has one entry for each seed, or one for all.
func addMachines(o *reproduce.Outcome, figure, system string, setting map[string]string, pools ...pool) {
	for t := range machineTypes {
		var count []float64
		for _, p := range pools {
			count = append(count, float64(p[t]))
		}
		o.AddRow(row(figure, system, machineTypes[t].Name, "", setting), count...)
	}
}

// comparedRules are the rules for sending queries that figures compare (§7): Ribbon's, DRS, CLKWRK and Kairos's own.
// Those without a system of that name are left out.
func comparedRules() []string {
	var out []string
	for _, name := range []string{"fcfs", "drs", "clkwrk", "kairos"} {
		if _, err := systems.Get(name); err == nil {
			out = append(out, name)
		}
	}
	return out
}

// addChart adds the chart of a figure.
func addChart(o *reproduce.Outcome, name, title string, columns int, panels ...plot.Panel) {
	o.AddChart(name, "Kairos, Figure "+title, columns, panels...)
}
