package ramsis

import (
	"context"
	"fmt"
	"math"
	"time"

	planner "github.com/sluice-serving/sluice/papers/ramsis"
	"github.com/sluice-serving/sluice/papers/reproduce"
)

// onFront is how many models of a task are on the front (§4.3.3, appendix B).
var onFront = map[string]float64{"image": 9, "text": 5}

// modelsOf shows the models of a task: accuracy over the 95th percentile of the latency of one query.
func modelsOf(task string) func(*runner, *reproduce.Sheet) error {
	return func(_ *runner, f *reproduce.Sheet) error {
		list, err := models(task)
		if err != nil {
			return err
		}
		at := f.At("task", task)
		p := f.Chart(f.Figure, "RAMSIS, Figure "+f.Figure+": models of "+task, 1).
			Panel("accuracy (%)", "95th percentile (ms)", reproduce.Auto, reproduce.Auto)
		for _, m := range list {
			took := m.took[0].Seconds() * 1000
			at.Row(m.name, "accuracy", "%", reproduce.Const(m.accuracy))
			at.Row(m.name, "95th percentile of one query", "ms", reproduce.Const(took))
			at.Row(m.name, "of 16", "ms", reproduce.Const(m.took[15].Seconds()*1000))
			p.Point("models", took, reproduce.Const(m.accuracy))
		}
		at.Row("all", "models on the front", "", reproduce.Const(float64(len(list)))).
			Published(onFront[task], "§4.3.3, appendix B")
		return nil
	}
}

// published80 is the share of decisions that take the largest batch with variable batching, in per cent (§4.3.2).
const published80 = 80

// figureV counts the decisions of policies with variable batching that take all queries that wait.
func figureV(run *runner, f *reproduce.Sheet) error {
	for _, slo := range []time.Duration{150 * ms, 300 * ms, 500 * ms} {
		for _, rate := range []float64{1200, 2000, 2800} {
			whole := reproduce.Add(run.Runner, fmt.Sprintf("whole batches within %v at %v", slo, rate), 10, 1,
				func(ctx context.Context, _ uint64) ([2]float64, error) {
					w, err := table2Row{pareto, 10, true, never}.problem(slo)
					if err != nil {
						return [2]float64{}, err
					}
					w.Arrivals = planner.Poisson(rate)
					all, several, err := w.WholeBatches(ctx)
					return [2]float64{100 * all, 100 * several}, err
				})
			at := f.At("slo", slo, "queries/s on 60 workers", rate)
			at.Row("ramsis, variable", "decisions that take all that wait", "%",
				whole.Each(func(v [2]float64) float64 { return v[0] })).Published(published80, "§4.3.2")
			at.Row("ramsis, variable", "of those with more than one waiting", "%",
				whole.Each(func(v [2]float64) float64 { return v[1] }))
		}
	}
	return nil
}

const (
	// statesPerSecond is generous for one step of value iteration, with a single action and a single successor.
	statesPerSecond = 1e8
	secondsOfYear   = 365.25 * 86400
)

// figureN counts the states of the naive process (§3.1.2), one worker's and with all queries of the queue told apart by
// their deadlines, and the time of one sweep over them. Published: 32 queries and 100 levels do not end in 24 hours.
func figureN(_ *runner, f *reproduce.Sheet) error {
	const levels = 100
	for _, queue := range []int{1, 2, 3, 4, 6, 8, 16, 32} {
		// queues of up to so many queries, each with one of the levels: C(queue+levels, queue)
		log := logFactorial(queue+levels) - logFactorial(queue) - logFactorial(levels)
		at := f.At("longest queue", queue, "levels of slack", levels)
		at.Row("naive", "states", "log10", reproduce.Const(log/math.Ln10))
		at.Row("naive", "a sweep, at least", "log10 years",
			reproduce.Const((log-math.Log(statesPerSecond*secondsOfYear))/math.Ln10))
		at.Row("ramsis", "states", "log10", reproduce.Const(math.Log10(float64(queue*levels+1))))
	}
	return nil
}

func logFactorial(n int) float64 {
	v, _ := math.Lgamma(float64(n + 1))
	return v
}
