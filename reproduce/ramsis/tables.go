package ramsis

import (
	"fmt"

	"github.com/sluice-serving/sluice/reproduce"
)

// table3 and table4 hold the violations of Figures 5 and 6 against what the authors measured on their cluster, where
// batches take about as long as profiled rather than the 95th percentile.
func table3(l *lab) error {
	all, err := l.onTrace()
	if err != nil {
		return err
	}
	return l.table("T3", "table3.csv", "workers", "workers", all)
}

func table4(l *lab) error {
	all, err := l.onConstant()
	if err != nil {
		return err
	}
	return l.table("T4", "table4.csv", "load_qps", "load", all)
}

func (l *lab) table(figure, file, column, axis string, all [][]series) error {
	values, err := published(file, 4, "task", "slo_ms", column, "system", "violations_pct")
	if err != nil {
		return err
	}
	l.Report(func(o *reproduce.Outcome) error {
		for _, task := range all {
			for _, s := range task {
				for _, p := range s.points {
					for i, x := range l.systems {
						r := row(figure, x.Name, violationRow, "%", map[string]string{
							"task": s.at.task, "SLO": s.at.slo.String(), axis: name(p.x),
						})
						if v, ok := values[fmt.Sprintf("%s %d %s %s", s.at.task, s.at.slo.Milliseconds(), name(p.x),
							x.Name)]; ok {
							r = known(r, v[0], "appendix F, the authors' cluster")
						}
						add(o, r, p.systems[i].each(violations)...)
					}
				}
			}
		}
		return nil
	})
	return nil
}
