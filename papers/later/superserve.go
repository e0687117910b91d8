package later

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving/workload"
)

// The claims of the abstract of SuperServe (NSDI 2025).
const (
	superServeAccuracy   = 4.67 // points more at the same attainment
	superServeAttainment = 2.85 // times the attainment at the same accuracy
)

// subnets are six variants of one network.
var subnets = []model{
	{"subnet-1", 0.7382, 1 * ms, 350 * us}, {"subnet-2", 0.7670, 1500 * us, 500 * us},
	{"subnet-3", 0.7775, 2 * ms, 700 * us}, {"subnet-4", 0.7850, 2500 * us, 950 * us},
	{"subnet-5", 0.7950, 3 * ms, 1300 * us}, {"subnet-6", 0.8016, 4 * ms, 1800 * us},
}

func supernet(models []model) *setting {
	return &setting{apps: [][]stage{{{"classify", models, 0}}}, machines: 8, slo: 36 * ms, maxBatch: 16}
}

// bursty is a base load with a burst of a given multiple for two of every ten seconds.
func bursty(base, burst float64, span time.Duration) load {
	l := load{name: "bursty", shape: 0.25, span: span}
	for at := 0.0; at < span.Seconds(); at += 10 {
		l.corners = append(l.corners, workload.Point{At: at, Rate: base})
		if at+4 < span.Seconds() {
			l.corners = append(l.corners, workload.Point{At: at + 4, Rate: base * burst})
		}
		if at+6 < span.Seconds() {
			l.corners = append(l.corners, workload.Point{At: at + 6, Rate: base})
		}
	}
	return l
}

// superServeFixed compares superserve with every variant alone, all with all machines.
func superServeFixed(r *runner, f *reproduce.Sheet) error {
	const base, source = 3000, "abstract: on a trace of Azure Functions"
	all, err := supernet(subnets).environment(r.Solver)
	if err != nil {
		return err
	}
	c := f.Chart("F1", "SuperServe: beside every fixed variant, 8 machines (modelled)", 3)
	for _, burst := range []float64{1, 2, 4} {
		at, l := f.At("burst", fmt.Sprint(burst, " times")), bursty(base, burst, r.span(50*time.Second))
		add := func(name string, x runs) runs {
			at.Row(name, "attainment", "%", x.Each(attained))
			at.Row(name, "accuracy of those in time", "%", x.Each(accuracy))
			return x
		}
		own := add("superserve", r.simulation(fmt.Sprint("F1 superserve ", burst), all,
			reproduce.System("superserve"), l))
		var fixed []runs
		for _, m := range subnets {
			env, err := supernet([]model{m}).environment(r.Solver)
			if err != nil {
				return err
			}
			fixed = append(fixed, add(m.name+" alone", r.simulation(fmt.Sprint("F1 ", m.name, burst), env,
				fixedVariant(), l)))
		}
		at.Row("superserve", "more accurate than a variant that attains as much", "points",
			beside(own, fixed, accuracy, func(it, mine *outcome) bool {
				return attained(it) >= attained(mine)-sameAttainment
			}, func(mine, best float64) float64 { return mine - best })).Published(superServeAccuracy, source)
		at.Row("superserve", "attainment in parts of a variant as accurate", "",
			beside(own, fixed, attained, func(it, mine *outcome) bool { return it.accuracy >= mine.accuracy },
				func(mine, best float64) float64 { return mine / max(best, 0.01) })).
			Published(superServeAttainment, source)
		panel := c.Panel("accuracy (%)", fmt.Sprintf("attainment (%%), bursts of %v times", burst), reproduce.Auto,
			reproduce.Auto)
		panel.Curve("fixed variants", func() ([]float64, []float64) { return byAttainment(fixed) })
		panel.Curve("superserve", func() ([]float64, []float64) { return byAttainment([]runs{own}) })
	}
	f.Note("Figure F1: 3,000 queries/s in clumps of four, with bursts for two of every ten " +
		"seconds. A fixed variant has all machines, one queue, and batches as large as are in time. As much is " +
		"attained where it is within a tenth of a point.")
	return nil
}

// sameAttainment is the difference in points up to which two attainments count as the same.
const sameAttainment = 0.1

// fixedVariant runs the only variant of a world.
func fixedVariant() systems.System {
	s := reproduce.System("superserve")
	s.Name, s.Router, s.Batcher = "fixed", "fcfs", "earlydrop"
	return s
}

// beside compares superserve with the best of the fixed variants that are enough, with every seed. It has no number
// where none is.
func beside(own runs, fixed []runs, of func(*outcome) float64, enough func(it, mine *outcome) bool,
	by func(mine, best float64) float64) reproduce.Values {
	return func() (out []float64) {
		for k, mine := range own.Results() {
			best := math.NaN()
			for _, x := range fixed {
				if it := x.Of(k); enough(it, mine) && !(best >= of(it)) {
					best = of(it)
				}
			}
			if !math.IsNaN(best) {
				out = append(out, by(of(mine), best))
			}
		}
		return out
	}
}

// byAttainment returns mean attainments, ascending, and the mean accuracies that go with them.
func byAttainment(list []runs) (x, y []float64) {
	slices.SortStableFunc(list, func(a, b runs) int {
		return cmp.Compare(a.Each(attained).Mean(), b.Each(attained).Mean())
	})
	for _, r := range list {
		x, y = append(x, r.Each(attained).Mean()), append(y, r.Each(accuracy).Mean())
	}
	return x, y
}
