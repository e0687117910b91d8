package infless

import (
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// published4 has CPU threads and accelerators for 100 queries/s, and dollars for a query (Table 4).
var published4 = map[string][3]float64{
	"openfaas+": {55.63, 2.13, 2e-5}, "batch": {41.45, 1.34, 1.32e-5}, "infless": {13.91, 0.51, 1.6e-6},
}

// table4 shows the resources for 100 queries/s that are answered in time, over all traces.
func table4(run *runner) error {
	tasks := run.traceTasks(contenders)
	run.Report(func(o *reproduce.Outcome) error {
		for a := range len(applications) + 1 {
			name, from, to := "both", 0, len(applications)
			if a < len(applications) {
				name, from, to = applications[a].name, a, a+1
			}
			at := reproduce.Setting("application", name)
			for e, x := range contenders {
				var cpus, gpus, dollars []float64
				for s := range run.Seeds {
					// mean over applications and traces
					threads, percent, n := 0.0, 0.0, float64((to-from)*len(traceNames))
					for _, app := range tasks[from:to] {
						for _, t := range app[e] {
							f := t.Results[s].(*traceRun)
							threads += f.threads / f.inTime * 100 / n
							percent += f.percent / 100 / f.inTime * 100 / n
						}
					}
					cpus, gpus = append(cpus, threads), append(gpus, percent)
					dollars = append(dollars, (threads*threadPrice+percent*acceleratorPrice)/3600/100)
				}
				r := [3]reproduce.Row{
					row("T4", x.name, "CPUs for 100 queries/s", "", at), row("T4", x.name, "GPUs for 100 queries/s", "",
						at), row("T4", x.name, "cost of a million queries", "$", at),
				}
				if p, ok := published4[x.name]; ok && name == "both" {
					r[0], r[1], r[2] = r[0].WithPublished(p[0], "Table 4"), r[1].WithPublished(p[1], "Table 4"),
						r[2].WithPublished(1e6*p[2], "Table 4")
				}
				o.AddRow(r[0], cpus...)
				o.AddRow(r[1], gpus...)
				o.AddRow(r[2], reproduce.Scaled(dollars, 1e6)...)
			}
		}
		o.Notes = append(o.Notes,
			"Table 4: a CPU is a thread. At the paper's prices its CPUs and GPUs of INFless come to $4.9 for a "+
				"million queries, not to the $1.6 that it prints.")
		return nil
	})
	return nil
}
