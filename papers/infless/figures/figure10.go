package infless

import (
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/sluice-serving/sluice/papers/reproduce"
)

// slowedByBatches are the models that batches slow more than four times on AWS Lambda (§2.2).
var slowedByBatches = []string{"ssd", "textcnn", "mobilenet"}

// figure2 stands in for AWS Lambda, whose measurements were not published: the artifact's latencies on CPU threads
// alone, of one query and of a batch of four.
func figure2(_ *runner, f *reproduce.Sheet) error {
	all, err := readLatencies()
	if err != nil {
		return err
	}
	for _, x := range slices.Concat(osvt, qa) {
		for _, at := range instanceSizes(map[string]latencyTable{x.model: all[x.model]}) {
			one, four := all[x.model][at][1], all[x.model][at][4]
			if at.percent > 0 || one == 0 {
				continue
			}
			p := f.At("threads", at.threads)
			p.Row(x.model, "one query", "ms", reproduce.Const(one.Seconds()*1000))
			if four > 0 {
				r := p.Row(x.model, "a batch of four, in its times", "x", reproduce.Const(float64(four)/float64(one)))
				if slices.ContainsFunc(slowedByBatches, func(s string) bool { return strings.HasPrefix(x.model, s) }) {
					r.Published(4, "§2.2: more than, on AWS Lambda")
				}
			}
		}
	}
	return nil
}

// figure10 shows the three traces: calls by minute in seven days.
func figure10(_ *runner, f *reproduce.Sheet) error {
	c := f.Chart("10", title("10: the three traces"), 1)
	for _, name := range traceNames {
		minutes, err := callsByMinute(name)
		if err != nil {
			return err
		}
		load, err := relativeLoad(name, len(minutes)/minutesPerStep)
		if err != nil {
			return err
		}
		var calls []float64
		idle := 0.0
		for _, n := range minutes {
			calls = append(calls, float64(n))
			if n == 0 {
				idle++
			}
		}
		mean, deviation := stat.PopMeanStdDev(calls, nil)
		at := f.At("trace", name)
		for _, q := range []struct {
			what, unit string
			value      float64
		}{
			{"calls", "/min", mean}, {"the highest minute", "/min", slices.Max(calls)},
			{"highest over mean", "x", slices.Max(calls) / mean}, {"minutes without a call", "%",
				100 * idle / float64(len(calls))},
			{"deviation over mean", "", deviation / mean},
		} {
			at.Row("trace", q.what, q.unit, reproduce.Const(q.value))
		}
		c.Panel(name+": load over the highest", "hours", 0, 1).Curve(name, func() (x, y []float64) {
			for k := range load {
				x = append(x, float64(k*minutesPerStep)/60)
			}
			return x, load
		})
	}
	return nil
}
