package ramsis

import (
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/reproduce"
	"github.com/sluice-serving/sluice/systems"
)

// figureH is appendix H: INFaaS asked for the accuracy of every model that is in time at all, in the setting of A4.
// Whoever knew for every load the best target would have the row "best target".
func figureH(l *lab) error {
	s, err := systems.Get("infaas-target")
	if err != nil {
		return err
	}
	list, err := models(a4.task)
	if err != nil {
		return err
	}
	type column struct {
		target float64
		runs   []*runs
	}
	var all []column
	for _, m := range list {
		if m.took[0] > a4.slo {
			continue
		}
		c := column{target: m.accuracy}
		at := a4
		at.floor = m.accuracy / 100
		for _, rate := range constantLoads() {
			on, err := l.constant(rate)
			if err != nil {
				return err
			}
			r, err := l.want(at, s, on)
			if err != nil {
				return err
			}
			c.runs = append(c.runs, r)
		}
		all = append(all, c)
	}
	l.Report(func(o *reproduce.Outcome) error {
		for n, rate := range constantLoads() {
			setting := map[string]string{"load": name(rate)}
			best := math.NaN()
			for _, c := range all {
				label := fmt.Sprintf("infaas-target %.2f", c.target)
				a, v := c.runs[n].each(accuracy), c.runs[n].each(violations)
				add(o, row("H", label, accuracyRow, "%", setting), a...)
				add(o, row("H", label, violationRow, "%", setting), v...)
				if mean(v) < satisfiable && !(best > mean(a)) {
					best = mean(a)
				}
			}
			add(o, row("H", "best target", accuracyRow, "%", setting), best)
		}
		return nil
	})
	return nil
}
