package ramsis

import (
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// figureH runs INFaaS with the accuracy of every model that is fast enough as its target, in the setup of A4 (appendix
// H). The row "best target" is the best of them for each load.
func figureH(run *runner) error {
	s, err := systems.Get("infaas-target")
	if err != nil {
		return err
	}
	list, err := models(a4Setup.task)
	if err != nil {
		return err
	}
	type column struct {
		target float64
		runs   []*runs
	}
	var all []column
	for _, m := range list {
		if m.took[0] > a4Setup.slo {
			continue
		}
		c := column{target: m.accuracy}
		at := a4Setup
		at.floor = m.accuracy / 100
		for _, rate := range run.rates {
			on, err := run.constantLoad(rate)
			if err != nil {
				return err
			}
			r, err := run.simulationTask(at, s, on)
			if err != nil {
				return err
			}
			c.runs = append(c.runs, r)
		}
		all = append(all, c)
	}
	run.Report(func(o *reproduce.Outcome) error {
		for n, rate := range run.rates {
			setting := map[string]string{"load": formatNumber(rate)}
			best := math.NaN()
			for _, c := range all {
				label := fmt.Sprintf("infaas-target %.2f", c.target)
				a, v := c.runs[n].each(accuracy), c.runs[n].each(violations)
				addRow(o, row("H", label, accuracyRow, "%", setting), a...)
				addRow(o, row("H", label, violationRow, "%", setting), v...)
				if reproduce.Mean(v) < satisfiableViolations && !(best > reproduce.Mean(a)) {
					best = reproduce.Mean(a)
				}
			}
			addRow(o, row("H", "best target", accuracyRow, "%", setting), best)
		}
		return nil
	})
	return nil
}
