package proteus

import "github.com/sluice-serving/sluice/reproduce"

// ablations of §6.5; the last two are ours: the head-room and the steadiness that this project's planner adds taken
// away.
var ablations = []string{
	"proteus", "proteus-without-placement", "proteus-without-selection", "proteus-without-adaptive-batching",
	"proteus-without-query-assignment",
}

const (
	fixedRoom  = "proteus at a head-room of 5 %"
	atInterval = "proteus planned every 30 s, bursts or not"
)

// publishedViolations are the overall ratios that §6.5 names, in per cent.
var publishedViolations = map[string]float64{"proteus-without-selection": 18, "proteus-without-query-assignment": 10}

func figure7(l *lab) error {
	w, err := l.world(setup{})
	if err != nil {
		return err
	}
	for _, t := range []*trace{l.trace(authorsTrace), l.trace(heavyTrace)} {
		var tasks []*task
		names := append(append([]string{}, ablations...), fixedRoom, atInterval)
		for _, name := range names {
			from := name
			if name == fixedRoom || name == atInterval {
				from = "proteus"
			}
			j := newJob(w, system(from), t)
			switch name {
			case fixedRoom:
				j.System.Options.Planning.Slack = -1
			case atInterval:
				j.System.Scaler, j.System.Options.Replan = "periodic", 0
			}
			tasks = append(tasks, l.want(name+" on "+t.name, j))
		}
		l.Report(func(o *reproduce.Outcome) error {
			for i, name := range names {
				known := map[string]float64{}
				if v, ok := publishedViolations[name]; ok && t.name == authorsTrace {
					known["SLO violations"] = v
				}
				totals(o, "7", tasks[i], name, map[string]string{"trace": t.name}, known, "§6.5, Figure 7")
			}
			o.Charts = append(o.Charts, reproduce.Chart{
				Name: "figure-7-" + t.name, Chart: series("Proteus, Figure 7: "+t.name, t, ablations,
					tasks[:len(ablations)]),
			})
			return nil
		})
	}
	return nil
}
