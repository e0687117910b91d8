package proteus

import (
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving/workload"
)

// clumpedGaps are the kinds of gaps of Figure clumps. Gamma gaps of a shape come in clumps of 1/shape on average.
var clumpedGaps = []struct {
	name string
	gaps func() (workload.Gaps, error)
}{
	{"flat", func() (workload.Gaps, error) { return workload.Uniform{}, nil }},
	{"Poisson", func() (workload.Gaps, error) { return workload.Poisson{}, nil }},
	{"clumps of 20", func() (workload.Gaps, error) { return workload.NewGamma(0.05) }},
}

// clumpedVariants are the systems of Figure clumps.
var clumpedVariants = []struct {
	label, system string
	change        func(*systems.Options)
}{
	{"proteus", "proteus", nil},
	{"proteus-headroom", "proteus-headroom", nil},
	{"infaas-accuracy", "infaas-accuracy", nil},
	{"sommelier", "sommelier", nil},
	{"proteus, three times the head-room", "proteus", func(o *systems.Options) { o.Planning.Headroom = 3 }},
	{"proteus, nothing given up", "proteus", func(o *systems.Options) {
		o.Planning.Slack, o.Planning.Tolerance, o.Planning.Gap = -1, -1, 0.0005
	}},
}

// figureClumps runs systems on traces whose queries come in clumps.
func figureClumps(run *runner) error {
	w, err := run.environment(setup{})
	if err != nil {
		return err
	}
	for _, of := range []*trace{run.trace(authorsTrace), run.trace(authorsTrace).level()} {
		for _, g := range clumpedGaps {
			t := of.withGaps(g.name, g.gaps)
			for _, v := range clumpedVariants {
				j := newJob(w, system(v.system), t)
				if v.change != nil {
					v.change(&j.System.Options)
				}
				task := run.simulationTask(v.label+" on "+t.name, j)
				run.Report(func(o *reproduce.Outcome) error {
					setting := map[string]string{"trace": of.name, "arrivals": g.name}
					addTotals(o, "clumps", task, v.label, setting, nil, "")
					return nil
				})
			}
		}
	}
	return nil
}
