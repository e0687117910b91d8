package ramsis

import (
	"math"
	"slices"

	"github.com/sluice-serving/sluice/measure/report/plot"
	"github.com/sluice-serving/sluice/reproduce"
	"github.com/sluice-serving/sluice/systems"
)

// a4 is the setting of the artifact's evaluation (appendix A.4.2).
var a4 = setup{task: "image", slo: 150 * ms, workers: 60}

const byAuthors = "the authors' code at 9b74967, run by us"

// figureA4 is the artifact's evaluation: the production trace with 60, 70 and 80 workers, and constant load with 60.
func figureA4(l *lab) error {
	on := *l.trace
	on.grid = true
	onTrace, err := l.points([]float64{60, 70, 80}, func(x float64) (setup, *load, error) {
		at := a4
		at.workers = int(x)
		return at, &on, nil
	})
	if err != nil {
		return err
	}
	exact, err := l.exactJellyfish(onTrace)
	if err != nil {
		return err
	}
	onConstant, err := l.points(constantLoads(), func(x float64) (setup, *load, error) {
		on, err := l.constant(x)
		return a4, on, err
	})
	if err != nil {
		return err
	}
	for _, p := range slices.Concat(onTrace, onConstant) {
		p.ahead = l.foresee(p.at, p.on)
	}
	byLoad, err := published("constant.csv", 1, "load_qps", "ramsis_pct", "ramsis_violations_pct", "jellyfish_pct")
	if err != nil {
		return err
	}
	bounds, err := published("fluid.csv", 1, "load_qps", "accuracy_pct")
	if err != nil {
		return err
	}
	averages, err := published("a4.csv", 2, "trace", "against", "mean_points", "max_points")
	if err != nil {
		return err
	}
	list, err := models(a4.task)
	if err != nil {
		return err
	}
	worst := list[0].accuracy
	l.Report(func(o *reproduce.Outcome) error {
		for _, p := range onConstant {
			v, has := byLoad[name(p.x)]
			l.levels(o, "A4", p, map[string]string{"trace": "constant", "load": name(p.x)},
				func(r reproduce.Row) reproduce.Row {
					switch {
					case r.System == "fluid bound" && has:
						return known(r, bounds[name(p.x)][0], "a linear program of ours, made before")
					case r.System == "ramsis" && r.Quantity == accuracyRow && has:
						return known(r, v[0], byAuthors)
					case r.System == "ramsis" && r.Quantity == violationRow && has:
						return known(r, v[1], byAuthors)
					case r.System == "jellyfish+" && r.Quantity == accuracyRow && has:
						return known(r, v[2], byAuthors)
					}
					return r
				})
		}
		l.above(o, "constant", onConstant, averages, worst)
		for n, p := range onTrace {
			setting := map[string]string{"trace": "real", "workers": name(p.x)}
			l.levels(o, "A4", p, setting, nil)
			add(o, row("A4", "jellyfish+ at every load", accuracyRow, "%", setting), exact[n].each(accuracy)...)
			add(o, row("A4", "jellyfish+ at every load", violationRow, "%", setting), exact[n].each(violations)...)
		}
		l.above(o, "real", onTrace, averages, worst)
		c := &plot.Chart{Title: "RAMSIS, appendix A.4: image, SLO 150 ms", Columns: 2}
		up, down := l.panels(onConstant, "60 workers", "load (queries/s)", math.Inf(1))
		upTrace, downTrace := l.panels(onTrace, "production trace", "workers", math.Inf(1))
		c.Panels = []plot.Panel{up, upTrace, down, downTrace}
		o.Charts = append(o.Charts, reproduce.Chart{Name: "figure-A4", Chart: c})
		return nil
	})
	return nil
}

// exactJellyfish has Jellyfish+ follow its rule at every load, rather than at multiples of 200 queries/s as in the
// artifact: with 80 workers that is worth two and a half points to it.
func (l *lab) exactJellyfish(points []*point) ([]*runs, error) {
	s, err := systems.Get("jellyfish+")
	if err != nil {
		return nil, err
	}
	var out []*runs
	for _, p := range points {
		r, err := l.want(p.at, s, l.trace)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// above are the lines that the artifact prints: by how much RAMSIS is above another system, mean and most over all
// points, those with many violations included; and the same for every other system of the lineup but those it is
// measured against.
func (l *lab) above(o *reproduce.Outcome, trace string, points []*point, averages map[string][]float64, worst float64) {
	var claims []claim
	for _, base := range bases {
		if v, ok := averages[trace+" "+base]; ok {
			claims = append(claims, claim{base, v[0], v[1]})
		}
	}
	l.versus(o, "A4", "above", "points", map[string]string{"trace": trace}, claims, "appendix A.4.2",
		func(i, b, seed int) (out []float64) {
			for _, p := range points {
				out = append(out, p.of(i, seed, worst)-p.of(b, seed, worst))
			}
			return out
		})
}
