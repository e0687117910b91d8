package infless

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
)

// callTraces are the recorded traces of the paper, with a mean of 0, and mixtures of so many calls a minute.
var callTraces = []callTrace{{"sporadic", 0}, {"periodic", 0}, {"bursty", 0}, {"mixed", 0.1}, {"mixed", 0.3},
	{"mixed", 1}, {"mixed", 3}}

// coldIdleRatios are published idle times and cold starts of LSTH relative to HHP.
type coldIdleRatios struct{ idle, cold float64 }

// published16 has them by trace, for gamma 0.7, 0.5 and 0.3.
var published16 = map[string][3]coldIdleRatios{
	"sporadic": {{0.875, 0.713}, {0.824, 0.748}, {0.841, 0.946}},
	"periodic": {{0.700, 0.838}, {0.673, 0.920}, {0.659, 0.827}},
	"bursty":   {{0.779, 0.913}, {0.715, 0.834}, {0.745, 0.710}},
}

var published16Names = []string{"lsth-0.7", "lsth-0.5", "lsth-0.3"}

// figure16 replays traces of seven days under keep-alive policies. On the first day policies learn; it is not counted.
func figure16(run *runner) error {
	tasksByKind := make(map[traceKind][]*reproduce.Task)
	for _, trace := range run.callTraces {
		for _, of := range []string{"app", "instances"} {
			t := run.AddTask("cold starts of "+of+", "+trace.label(), 4, run.Seeds,
				func(_ context.Context, seed uint64) (any, error) {
					calls, err := trace.calls(seed)
					if err != nil {
						return nil, err
					}
					return evaluatePolicies(of, calls), nil
				})
			kind := traceKind{"recorded", of}
			if trace.mean > 0 {
				kind.origin = "mixed"
			}
			tasksByKind[kind] = append(tasksByKind[kind], t)
			run.Report(func(o *reproduce.Outcome) error {
				addTrace16(o, trace, of, t)
				return nil
			})
		}
	}
	for _, kind := range []traceKind{
		{"recorded", "app"}, {"recorded", "instances"}, {"mixed", "app"}, {"mixed", "instances"},
	} {
		tasks := tasksByKind[kind]
		if len(tasks) == 0 {
			continue
		}
		run.Report(func(o *reproduce.Outcome) error {
			addMeans16(o, kind, tasks, run.Seeds)
			o.Notes = append(o.Notes, notes16[kind]...)
			return nil
		})
	}
	return nil
}

// callTrace is a trace of calls of one app.
type callTrace struct {
	name string
	mean float64 // calls a minute of a mixture; 0 for a recorded trace
}

func (x callTrace) label() string {
	if x.mean > 0 {
		return fmt.Sprintf("%s, %v a minute", x.name, x.mean)
	}
	return x.name
}

// calls draws the calls of the trace with a seed.
func (x callTrace) calls(seed uint64) ([]serving.Time, error) {
	if x.mean == 0 {
		return drawRecorded(x.name, seed)
	}
	return drawMixture(x.mean, seed), nil
}

// traceKind is where a trace is from, recorded or mixed, and what a policy keeps: the app or its instances.
type traceKind struct{ origin, of string }

// addTrace16 adds the rows of one trace and its chart.
func addTrace16(o *reproduce.Outcome, trace callTrace, of string, t *reproduce.Task) {
	setting := reproduce.Setting("trace", trace.label(), "of", of)
	// Numbers that are NaN, because a policy never has as few cold starts, have no row.
	each := func(number func(r policyResults) float64) []float64 {
		return slices.DeleteFunc(reproduce.Each(t, number), math.IsNaN)
	}
	base := referenceIndex()
	var lines []plot.Line
	for n, k := range keepPolicies {
		cold, idle := row("16", k.name, coldRow, "x", setting), row("16", k.name, idleRow, "x", setting)
		if p, ok := published16[trace.name]; ok && of == "instances" {
			if g := slices.Index(published16Names, k.name); g >= 0 {
				cold, idle = cold.WithPublished(p[g].cold, source16), idle.WithPublished(p[g].idle, source16)
			}
		}
		o.AddRow(row("16", k.name, "cold starts", "%", setting),
			each(func(r policyResults) float64 { return r.chosen[n].cold })...)
		o.AddRow(row("16", k.name, "idle", "h/day", setting),
			each(func(r policyResults) float64 { return r.chosen[n].idle })...)
		o.AddRow(cold, each(func(r policyResults) float64 { return r.chosen[n].cold / r.chosen[base].cold })...)
		o.AddRow(idle, each(func(r policyResults) float64 { return r.chosen[n].idle / r.chosen[base].idle })...)
		o.AddRow(row("16", k.name, "idle time for as many cold starts", "x", setting),
			each(func(r policyResults) float64 {
				return idleAtColdRate(r.curve[n], r.chosen[base].cold) / r.chosen[base].idle
			})...)
		line := plot.Line{Name: k.name}
		for at := range k.sweep {
			line.X = append(line.X, reproduce.Mean(each(func(r policyResults) float64 { return r.curve[n][at].cold })))
			line.Y = append(line.Y, reproduce.Mean(each(func(r policyResults) float64 { return r.curve[n][at].idle })))
		}
		lines = append(lines, line)
	}
	addChart(o, fmt.Sprintf("16-%s-%s", of, trace.label()), fmt.Sprintf("16: %s, %s", trace.label(), of), 1,
		plot.Panel{Name: "idle (h/day)", XName: "cold starts (%)", Lines: lines, Low: 0, High: math.NaN()})
}

// addMeans16 adds the rows of the means over the traces of a kind.
func addMeans16(o *reproduce.Outcome, kind traceKind, tasks []*reproduce.Task, seeds int) {
	setting := reproduce.Setting("trace", "mean of the "+kind.origin, "of", kind.of)
	mean := func(number func(r policyResults) float64) []float64 {
		out := make([]float64, seeds)
		for _, t := range tasks {
			for seed, v := range reproduce.Each(t, number) {
				out[seed] += v / float64(len(tasks))
			}
		}
		return out
	}
	base := referenceIndex()
	for n, k := range keepPolicies {
		cold, idle := row("16", k.name, coldRow, "x", setting), row("16", k.name, idleRow, "x", setting)
		if g := slices.Index(published16Names, k.name); g >= 0 && kind == (traceKind{"recorded", "instances"}) {
			p := publishedMean16(g)
			cold, idle = cold.WithPublished(p.cold, source16), idle.WithPublished(p.idle, source16)
		}
		o.AddRow(cold, mean(func(r policyResults) float64 { return r.chosen[n].cold / r.chosen[base].cold })...)
		o.AddRow(idle, mean(func(r policyResults) float64 { return r.chosen[n].idle / r.chosen[base].idle })...)
	}
}

// publishedMean16 is the mean over the published traces for published16Names[g]. It adds in the order of the names of
// traces, because sums of floats depend on the order.
func publishedMean16(g int) (mean coldIdleRatios) {
	for _, trace := range slices.Sorted(maps.Keys(published16)) {
		p := published16[trace][g]
		mean.cold += p.cold / float64(len(published16))
		mean.idle += p.idle / float64(len(published16))
	}
	return mean
}

const (
	coldRow, idleRow = "cold starts by HHP's", "idle time by HHP's"
	source16         = "Figure 16, plotting data; the text says 0.78 of the cold starts and 0.76 of the idle time " +
		"on average"
)

var notes16 = map[traceKind][]string{{"recorded", "app"}: {
	"Figure 16 replays invocations without a cluster. Of an app: something is warm or not when a call comes. Of " +
		"instances: the first, the second and so on are needed in minutes with so many calls, and each is kept by " +
		"itself. HHP looks back for four hours, as INFless has it, or (week) on all seven days, as its own paper has " +
		"it; the first day is for learning and not counted.",
	"Idle time for as many cold starts is read from the policy's trade-off curve where it has as many as HHP.",
}}
