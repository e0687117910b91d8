package ramsis

import (
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// figureH runs INFaaS with the accuracy of every model that is fast enough as its target, in the setup of A4 (appendix
// H). The row "best target" is the best of them for each load.
func figureH(run *runner, f *reproduce.Sheet) error {
	list, err := models(a4Setup.task)
	if err != nil {
		return err
	}
	for _, rate := range run.rates {
		at := f.At("load", rate)
		var all []runs
		for _, m := range list {
			if m.took[0] > a4Setup.slo {
				continue
			}
			with := a4Setup
			with.floor = m.accuracy / 100
			r := run.simulation(with, reproduce.System("infaas-target"), run.constantLoad(rate))
			reproduce.AddRows(at, fmt.Sprintf("infaas-target %.2f", m.accuracy), r, quantities)
			all = append(all, r)
		}
		at.Row("best target", accuracyRow, "%", func() []float64 {
			best := math.NaN()
			for _, r := range all {
				if a := r.Each(accuracy).Mean(); r.Each(violations).Mean() < satisfiableViolations && !(best > a) {
					best = a
				}
			}
			return []float64{best}
		})
	}
	return nil
}
