package proteus

import "github.com/sluice-serving/sluice/papers/reproduce"

// ablations are the systems of §6.5.
var ablations = []string{
	"proteus", "proteus-without-placement", "proteus-without-selection", "proteus-without-adaptive-batching",
	"proteus-without-query-assignment",
}

const (
	fixedHeadroom = "proteus at a head-room of 5 %"
	periodicOnly  = "proteus planned every 30 s, bursts or not"
)

// publishedViolations are the overall violations that §6.5 names, in per cent.
var publishedViolations = map[string]float64{"proteus-without-selection": 18, "proteus-without-query-assignment": 10}

func figure7(run *runner) error {
	w, err := run.environment(setup{})
	if err != nil {
		return err
	}
	for _, t := range []*trace{run.trace(authorsTrace), run.trace(heavyTrace)} {
		var tasks []*task
		names := append(append([]string{}, ablations...), fixedHeadroom, periodicOnly)
		for _, name := range names {
			from := name
			if name == fixedHeadroom || name == periodicOnly {
				from = "proteus"
			}
			j := newJob(w, system(from), t)
			switch name {
			case fixedHeadroom:
				j.System.Options.Planning.Slack = -1
			case periodicOnly:
				j.System.Scaler, j.System.Options.Replan = "periodic", 0
			}
			tasks = append(tasks, run.simulationTask(name+" on "+t.name, j))
		}
		run.Report(func(o *reproduce.Outcome) error {
			for i, name := range names {
				known := map[string]float64{}
				if v, ok := publishedViolations[name]; ok && t.name == authorsTrace {
					known["SLO violations"] = v
				}
				addTotals(o, "7", tasks[i], name, map[string]string{"trace": t.name}, known, "§6.5, Figure 7")
			}
			o.Charts = append(o.Charts, reproduce.Chart{
				Name: "figure-7-" + t.name, Drawing: timeChart("Proteus, Figure 7: "+t.name, t, ablations,
					tasks[:len(ablations)]),
			})
			return nil
		})
	}
	return nil
}
