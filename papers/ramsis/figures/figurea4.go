package ramsis

import (
	"math"
	"slices"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// a4Setup is the setup of the artifact's evaluation (appendix A.4.2).
var a4Setup = setup{task: "image", slo: 150 * ms, workers: 60}

const byAuthors = "the authors' code at 9b74967, run by us"

// figureA4 is the artifact's evaluation: the production trace with 60, 70 and 80 workers, and constant loads with 60.
func figureA4(run *runner) error {
	on := *run.trace
	on.grid = true
	tracePoints, err := run.points([]float64{60, 70, 80}, func(x float64) (setup, *load, error) {
		at := a4Setup
		at.workers = int(x)
		return at, &on, nil
	})
	if err != nil {
		return err
	}
	exact, err := run.exactJellyfish(tracePoints)
	if err != nil {
		return err
	}
	constantPoints, err := run.points(run.rates, func(x float64) (setup, *load, error) {
		on, err := run.constantLoad(x)
		return a4Setup, on, err
	})
	if err != nil {
		return err
	}
	for _, p := range slices.Concat(tracePoints, constantPoints) {
		p.foresight = run.foresightTask(p.at, p.on)
	}
	artifact, err := readArtifact()
	if err != nil {
		return err
	}
	list, err := models(a4Setup.task)
	if err != nil {
		return err
	}
	worst := list[0].accuracy
	run.Report(func(o *reproduce.Outcome) error {
		for _, p := range constantPoints {
			run.addPointRows(o, "A4", p, map[string]string{"trace": "constant", "load": formatNumber(p.x)},
				func(r reproduce.Row) reproduce.Row { return artifact.withPublished(r, formatNumber(p.x)) })
		}
		run.addArtifactGains(o, "constant", constantPoints, artifact.averages, worst)
		for n, p := range tracePoints {
			setting := map[string]string{"trace": "real", "workers": formatNumber(p.x)}
			run.addPointRows(o, "A4", p, setting, nil)
			addRow(o, row("A4", "jellyfish+ at every load", accuracyRow, "%", setting), exact[n].each(accuracy)...)
			addRow(o, row("A4", "jellyfish+ at every load", violationRow, "%", setting), exact[n].each(violations)...)
		}
		run.addArtifactGains(o, "real", tracePoints, artifact.averages, worst)
		c := &plot.Chart{Title: "RAMSIS, appendix A.4: image, SLO 150 ms", Columns: 2}
		up, down := run.panels(constantPoints, "60 workers", "load (queries/s)", math.Inf(1))
		upTrace, downTrace := run.panels(tracePoints, "production trace", "workers", math.Inf(1))
		c.Panels = []plot.Panel{up, upTrace, down, downTrace}
		o.Charts = append(o.Charts, reproduce.Chart{Name: "figure-A4", Drawing: c})
		return nil
	})
	return nil
}

// artifactNumbers are published numbers of the artifact's evaluation. byLoad has the accuracy and violations of RAMSIS
// and the accuracy of Jellyfish+ under constant loads, bounds our fluid bounds. Both are by load in queries/s. averages
// are by trace and base.
type artifactNumbers struct{ byLoad, bounds, averages map[string][]float64 }

func readArtifact() (a artifactNumbers, err error) {
	a.byLoad, err = readPublished("constant.csv", 1, "load_qps", "ramsis_pct", "ramsis_violations_pct", "jellyfish_pct")
	if err != nil {
		return a, err
	}
	if a.bounds, err = readPublished("fluid.csv", 1, "load_qps", "accuracy_pct"); err != nil {
		return a, err
	}
	a.averages, err = readPublished("a4.csv", 2, "trace", "against", "mean_points", "max_points")
	return a, err
}

// withPublished returns the row of a constant load with its published number, if there is one.
func (a *artifactNumbers) withPublished(r reproduce.Row, load string) reproduce.Row {
	v, ok := a.byLoad[load]
	switch {
	case !ok:
	case r.System == "fluid bound":
		return r.WithPublished(a.bounds[load][0], "a linear program of ours, made before")
	case r.System == "ramsis" && r.Quantity == accuracyRow:
		return r.WithPublished(v[0], byAuthors)
	case r.System == "ramsis" && r.Quantity == violationRow:
		return r.WithPublished(v[1], byAuthors)
	case r.System == "jellyfish+" && r.Quantity == accuracyRow:
		return r.WithPublished(v[2], byAuthors)
	}
	return r
}

// exactJellyfish runs Jellyfish+ with its rule at every load. In the artifact it uses multiples of 200 queries/s. With
// 80 workers the difference is two and a half points.
func (run *runner) exactJellyfish(points []*point) ([]*runs, error) {
	s, err := systems.Get("jellyfish+")
	if err != nil {
		return nil, err
	}
	var out []*runs
	for _, p := range points {
		r, err := run.simulationTask(p.at, s, run.trace)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// addArtifactGains adds the numbers that the artifact prints: by how much RAMSIS is above another system, mean and most
// over all points, also those with many violations. Other systems that are no base get the same rows. worst is the
// accuracy of a point without any query in time.
func (run *runner) addArtifactGains(o *reproduce.Outcome, trace string, points []*point, averages map[string][]float64,
	worst float64) {
	var claims []claim
	for _, base := range bases {
		if v, ok := averages[trace+" "+base]; ok {
			claims = append(claims, claim{base, v[0], v[1]})
		}
	}
	run.addComparison(o, "A4", "above", "points", map[string]string{"trace": trace}, claims, "appendix A.4.2",
		func(i, b, seed int) (out []float64) {
			for _, p := range points {
				out = append(out, p.accuracyOr(i, seed, worst)-p.accuracyOr(b, seed, worst))
			}
			return out
		})
}
