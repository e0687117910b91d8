package infless

import "github.com/sluice-serving/sluice/papers/reproduce"

// published4 has CPU threads and accelerators for 100 queries/s, and dollars for a query (Table 4).
var published4 = map[string][]float64{
	"openfaas+": {55.63, 2.13, 2e-5}, "batch": {41.45, 1.34, 1.32e-5}, "infless": {13.91, 0.51, 1.6e-6},
}

// requestsOfDay is what the website's 600 models answer in a day, and publishedDay what that costs with INFless, in $
// (§5.3). The 400 servers that they run on cost $4,253.
const requestsOfDay, publishedDay = 1.9e9, 941

// table4 shows the resources for 100 queries/s that are answered in time, over all traces.
func table4(run *runner, f *reproduce.Sheet) error {
	const source = "Table 4"
	for _, of := range []struct {
		name string
		apps []application
	}{{applications[0].name, applications[:1]}, {applications[1].name, applications[1:]}, {"both", applications}} {
		at := f.At("application", of.name)
		for _, x := range contenders {
			mean := func(number func(*traceRun) float64) reproduce.Values {
				var list []reproduce.Values
				for _, a := range of.apps {
					for _, trace := range traceNames {
						list = append(list, run.simulation(x, a, trace).Each(number))
					}
				}
				return reproduce.MeanOf(list...)
			}
			cpus := mean(func(f *traceRun) float64 { return f.threads / f.inTime * 100 })
			gpus := mean(func(f *traceRun) float64 { return f.percent / 100 / f.inTime * 100 })
			dollars := cpus.With(gpus, func(threads, percent float64) float64 {
				return (threads*threadPrice + percent*acceleratorPrice) / 3600 / 100
			})
			rows := []*reproduce.Entry{
				at.Row(x.name, "CPUs for 100 queries/s", "", cpus), at.Row(x.name, "GPUs for 100 queries/s", "", gpus),
				at.Row(x.name, "cost of a million queries", "$", dollars.Times(1e6)),
			}
			day := at.Row(x.name, "cost of a day of 600 models", "$", dollars.Times(requestsOfDay))
			if x.name == "infless" && of.name == "both" {
				day.Published(publishedDay, "§5.3")
			}
			for n, scale := range []float64{1, 1, 1e6} {
				if of.name == "both" {
					rows[n].Published(scale*reproduce.InList(published4, x.name, n), source)
				}
			}
		}
	}
	f.Note("Table 4: a CPU is a thread. At the paper's prices its CPUs and GPUs of INFless come to $4.9 for a " +
		"million queries, not to the $1.6 that it prints. At $1.6, 1.9 billion queries cost $3,040, not the $941 a " +
		"day that it prints.")
	return nil
}
