package ramsis

import (
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// a4Setup is the setup of the artifact's evaluation (appendix A.4.2).
var a4Setup = setup{task: "image", slo: 150 * ms, workers: 60}

const byAuthors = "the authors' code at 9b74967, run by us"

// figureA4 is the artifact's evaluation: the production trace with 60, 70 and 80 workers, and constant loads with 60.
func figureA4(run *runner, f *reproduce.Sheet) error {
	artifact, err := readArtifact()
	if err != nil {
		return err
	}
	list, err := models(a4Setup.task)
	if err != nil {
		return err
	}
	on := *run.trace
	on.grid = true
	constant := run.along(run.byLoad(), "60 workers", a4Setup)
	for _, p := range constant.points {
		rows := run.addA4Rows(f.At("trace", "constant", "load", p.x), p)
		load := fmt.Sprint(p.x)
		rows["ramsis"][accuracyRow].Published(reproduce.InList(artifact.byLoad, load, 0), byAuthors)
		rows["ramsis"][violationRow].Published(reproduce.InList(artifact.byLoad, load, 1), byAuthors)
		rows["jellyfish+"][accuracyRow].Published(reproduce.InList(artifact.byLoad, load, 2), byAuthors)
		rows["fluid bound"][accuracyRow].Published(reproduce.InList(artifact.bounds, load, 0),
			"a linear program of ours, made before")
	}
	run.artifactGains(f, "constant", constant, artifact.averages, list[0].accuracy)
	trace := run.along(byWorkers(&on, 60, 70, 80), "production trace", a4Setup)
	for _, p := range trace.points {
		at := f.At("trace", "real", "workers", p.x)
		run.addA4Rows(at, p)
		// In the artifact Jellyfish+ has its rule at multiples of 200 queries/s. With 80 workers the difference to its
		// rule at every load is two and a half points.
		reproduce.AddRows(at, "jellyfish+ at every load",
			run.simulation(p.at, reproduce.System("jellyfish+"), run.trace), quantities)
	}
	run.artifactGains(f, "real", trace, artifact.averages, list[0].accuracy)
	c := f.Chart("A4", "RAMSIS, appendix A.4: image, SLO 150 ms", 2)
	run.draw(c, math.Inf(1), constant, trace)
	return nil
}

// addA4Rows adds the rows of a point, and the bound by foresight.
func (run *runner) addA4Rows(at reproduce.Place, p *point) map[string]map[string]*reproduce.Entry {
	out := run.addRows(at, p)
	at.Row("foresight, at most", accuracyRow, "%", reproduce.All(run.foresightTask(p.at, p.on)))
	return out
}

// artifactNumbers are published numbers of the artifact's evaluation. byLoad has the accuracy and violations of RAMSIS
// and the accuracy of Jellyfish+ under constant loads, bounds our fluid bounds. Both are by load in queries/s. averages
// are by trace and base.
type artifactNumbers struct{ byLoad, bounds, averages map[string][]float64 }

func readArtifact() (a artifactNumbers, err error) {
	a.byLoad, err = readPublished("constant.csv", "load_qps,ramsis_pct,ramsis_violations_pct,jellyfish_pct", 1)
	if err != nil {
		return a, err
	}
	if a.bounds, err = readPublished("fluid.csv", "load_qps,accuracy_pct", 1); err != nil {
		return a, err
	}
	a.averages, err = readPublished("a4.csv", "trace,against,mean_points,max_points", 2)
	return a, err
}

// artifactGains adds the numbers that the artifact prints: by how much RAMSIS is above another system, mean and most
// over all points, also those with many violations. Other systems that are no base get the same rows. worst is the
// accuracy of a point without any query in time, as in the authors' code.
func (run *runner) artifactGains(f *reproduce.Sheet, trace string, x series, averages map[string][]float64,
	worst float64) {
	published := make(claims)
	for _, base := range bases {
		published[base] = averages[trace+" "+base]
	}
	or := func(accuracy float64) float64 {
		if math.IsNaN(accuracy) {
			return worst
		}
		return accuracy
	}
	run.compare(f.At("trace", trace), "above", "points", []series{x}, published, "appendix A.4.2",
		func(p pair) float64 { return or(p.mine.accuracy) - or(p.base.accuracy) })
}
