package ramsis

import (
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// contender is a system with its options and models, as one of those that a figure compares.
type contender struct {
	name     string
	system   systems.System
	modelSet modelSet
	runs     []*runs // by load
}

// newContender returns a system by name. change, which may be nil, changes its options; the system is then called
// label.
func newContender(label, name string, c modelSet, change func(*systems.System)) (*contender, error) {
	s, err := systems.Get(name)
	if err != nil {
		return nil, err
	}
	if change != nil {
		change(&s)
		s.Name = label
	}
	return &contender{name: label, system: s, modelSet: c}, nil
}

// sideBySide runs contenders under every constant load and adds accuracy and violations of each.
func (run *runner) sideBySide(figure, title string, at setup, list []*contender) error {
	loads := run.rates
	for _, v := range list {
		at.modelSet = v.modelSet
		for _, x := range loads {
			on, err := run.constantLoad(x)
			if err != nil {
				return err
			}
			r, err := run.simulationTask(at, v.system, on)
			if err != nil {
				return err
			}
			v.runs = append(v.runs, r)
		}
	}
	run.Report(func(o *reproduce.Outcome) error {
		up := plot.Panel{
			Name: fmt.Sprintf("%d workers: accuracy (%%)", at.workers), XName: "load (queries/s)", Low: math.NaN(),
			High: math.NaN(),
		}
		down := plot.Panel{
			Name: fmt.Sprintf("%d workers: violations (%%)", at.workers), XName: "load (queries/s)", Low: 0,
			High: math.NaN(),
		}
		for k, x := range loads {
			setting := map[string]string{"load": formatNumber(x), "workers": fmt.Sprint(at.workers)}
			for _, v := range list {
				addRow(o, row(figure, v.name, accuracyRow, "%", setting), v.runs[k].each(accuracy)...)
				addRow(o, row(figure, v.name, violationRow, "%", setting), v.runs[k].each(violations)...)
			}
		}
		for _, v := range list {
			a, b := lines(v.name, loads, v.runs, satisfiableViolations)
			up.Lines, down.Lines = append(up.Lines, a), append(down.Lines, b)
		}
		o.Charts = append(o.Charts, reproduce.Chart{
			Name: "figure-" + figure, Drawing: &plot.Chart{
				Title: "RAMSIS, Figure " + figure + ": " + title, Columns: 2, Panels: []plot.Panel{up, down},
			},
		})
		return nil
	})
	return nil
}

// figure8 shows the value of more models, with 100 workers (§7.3.2).
func figure8(run *runner) error {
	var list []*contender
	for _, name := range []string{"ramsis", "modelswitching"} {
		for _, c := range []modelSet{pareto, dense} {
			label := name + ", 9 models"
			if c == dense {
				label = name + ", 60 models"
			}
			v, err := newContender(label, name, c, nil)
			if err != nil {
				return err
			}
			list = append(list, v)
		}
	}
	at := a4Setup
	at.workers = 100
	return run.sideBySide("8", "9 and 60 models", at, list)
}

// figure10 varies the discretisation of slack (appendix C).
func figure10(run *runner) error {
	var list []*contender
	for _, levels := range []int{2, 10, 100, -1} {
		label := fmt.Sprintf("ramsis, FLD D = %d", levels)
		if levels < 0 {
			label = "ramsis, MD"
		}
		v, err := newContender(label, "ramsis", pareto, func(s *systems.System) { s.Options.Policies.Levels = levels })
		if err != nil {
			return err
		}
		list = append(list, v)
	}
	return run.sideBySide("10", "discretisations of slack", a4Setup, list)
}

// figure11 compares batches of all waiting queries with batches that may leave some behind (appendix D).
func figure11(run *runner) error {
	var list []*contender
	for _, x := range [][2]string{
		{"ramsis, maximal batching", "ramsis"}, {"ramsis, variable batching", "ramsis-variable"},
	} {
		v, err := newContender(x[0], x[1], pareto, nil)
		if err != nil {
			return err
		}
		list = append(list, v)
	}
	return run.sideBySide("11", "maximal and variable batching", a4Setup, list)
}

// figure12 compares 9 models with 3 (appendix E).
func figure12(run *runner) error {
	var list []*contender
	for _, name := range []string{"ramsis", "jellyfish+"} {
		for _, c := range []modelSet{pareto, few} {
			label := name + ", 9 models"
			if c == few {
				label = name + ", 3 models"
			}
			v, err := newContender(label, name, c, nil)
			if err != nil {
				return err
			}
			list = append(list, v)
		}
	}
	return run.sideBySide("12", "9 and 3 models", a4Setup, list)
}
