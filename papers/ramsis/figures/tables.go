package ramsis

import (
	"fmt"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// figureT3 compares the violations of Figure 5 with those on the authors' cluster. Batches there take about the
// profiled mean, not the 95th percentile. figureT4 does the same for Figure 6.
func figureT3(run *runner) error {
	all, err := run.traceSeries()
	if err != nil {
		return err
	}
	return run.addTable("T3", "table3.csv", "workers", "workers", all)
}

func figureT4(run *runner) error {
	all, err := run.constantSeries()
	if err != nil {
		return err
	}
	return run.addTable("T4", "table4.csv", "load_qps", "load", all)
}

func (run *runner) addTable(figure, file, column, axis string, all [][]pointSeries) error {
	values, err := readPublished(file, 4, "task", "slo_ms", column, "system", "violations_pct")
	if err != nil {
		return err
	}
	run.Report(func(o *reproduce.Outcome) error {
		for _, task := range all {
			for _, s := range task {
				for _, p := range s.points {
					for i, x := range run.systems {
						r := row(figure, x.Name, violationRow, "%", map[string]string{
							"task": s.at.task, "SLO": s.at.slo.String(), axis: formatNumber(p.x),
						})
						if v, ok := values[fmt.Sprintf("%s %d %s %s", s.at.task, s.at.slo.Milliseconds(),
							formatNumber(p.x),
							x.Name)]; ok {
							r = r.WithPublished(v[0], "appendix F, the authors' cluster")
						}
						addRow(o, r, p.systems[i].each(violations)...)
					}
				}
			}
		}
		return nil
	})
	return nil
}
