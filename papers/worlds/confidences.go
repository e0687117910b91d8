package worlds

import (
	"slices"

	"github.com/sluice-serving/sluice/internal/measure/worlds"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// withConfidences is how many worlds of a seed are run with confidences.
const withConfidences = 24

// cascading are the systems that are compared there: those that let queries have a second answer, and the default one
// without.
var cascading = []string{systems.Default, systems.Default + "-without-cascades", "cascadeserve", "diffserve", "cascade"}

// confidences shows systems in worlds whose variants know how sure they are of an answer.
func confidences(r *runner, f *reproduce.Sheet) error {
	sure := &runner{Runner: r.Runner}
	for _, s := range r.systems {
		if slices.Contains(cascading, s.Name) {
			sure.systems = append(sure.systems, s)
		}
	}
	for n := range withConfidences {
		sure.numbers = append(sure.numbers, worlds.WithConfidences+n)
	}
	sure.everything(f)
	f.Report(func(o *reproduce.Outcome) error {
		means, best := make([]mean, len(sure.systems)), make([]int, len(sure.systems))
		err := sure.each(func(w, k int, _ *place, most *limit) error {
			first := 0
			for s := range sure.systems {
				x := sure.runs[w][s].Of(k)
				means[s].add(x, most)
				if x.utility > sure.runs[w][first].Of(k).utility {
					first = s
				}
			}
			best[first]++
			return nil
		})
		for s, m := range means {
			at, name := f.At("worlds", m.n), sure.systems[s].Name
			o.AddRow(at.Named(name, "mean share of the bound", "%"), 100*m.sum/float64(m.n))
			o.AddRow(at.Named(name, "in time", "%"), 100*m.inTime/float64(m.n))
			o.AddRow(at.Named(name, "best", "worlds"), float64(best[s]))
			o.AddRow(at.Named(name, "refused", "worlds"), float64(m.refused))
		}
		return err
	})
	return nil
}
