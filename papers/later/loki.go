package later

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/internal/sim/experiment"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving/workload"
)

// The claims of the abstract of Loki (HPDC 2024).
const (
	lokiGain      = 2.7  // capacity of a fixed cluster over hardware scaling only
	lokiViolates  = 10.0 // times fewer violations than systems before it
	lokiOffPeak   = 2.67 // times fewer servers off peak
	lokiAbstract  = "abstract"
	lokiMachines  = 20
	lokiObjective = 250 * ms
)

// traffic is a pipeline that finds three objects in a frame and classifies each.
func traffic() *setting {
	return &setting{
		apps: [][]stage{{
			{"detect", []model{
				{"detect-n", 0.65, 2 * ms, 8 * ms}, {"detect-s", 0.80, 2 * ms, 11 * ms},
				{"detect-m", 0.90, 3 * ms, 16 * ms}, {"detect-l", 0.96, 3 * ms, 22 * ms},
				{"detect-x", 1, 4 * ms, 33 * ms},
			}, 3},
			{"classify", []model{
				{"classify-0", 0.91, 2 * ms, 1200 * us}, {"classify-1", 0.94, 3 * ms, 1600 * us},
				{"classify-3", 0.97, 4 * ms, 2100 * us}, {"classify-4", 0.985, 4 * ms, 2800 * us},
				{"classify-5", 0.995, 5 * ms, 3900 * us}, {"classify-6", 1, 6 * ms, 5000 * us},
			}, 0},
		}},
		machines: lokiMachines, slo: lokiObjective, maxBatch: 16,
	}
}

// system returns a system of the list.
func system(name string) systems.System {
	s, err := systems.Get(name)
	if err != nil {
		panic(err)
	}
	return s
}

// compared are the systems of the figures. Queries arrive by chance, so that the two systems of Loki plan for a fifth
// more than comes.
func compared() []systems.System {
	out := []systems.System{system("loki"), system("loki-hardware"), system("proteus"), system("ipa")}
	for n := range out[:2] {
		out[n].Options.Planning.Headroom = lokiHeadroom
	}
	return out
}

const (
	lokiHeadroom = 1.2
	// lokiMost is the highest rate, in queries/s, at which the searches of Figure L1 look.
	lokiMost = 2000
)

// lokiLimits are when a load counts as carried: whatever the accuracy, and with nine tenths of the best.
var lokiLimits = []limits{{late: 5}, {late: 5, accuracy: 90}}

func (r *runner) span(full time.Duration) time.Duration {
	if r.quick {
		return full / 5
	}
	return full
}

func number(x float64) float64 { return x }

// lokiCapacity compares what 20 machines carry.
func lokiCapacity(r *runner) error {
	env, err := traffic().environment(r.Solver)
	if err != nil {
		return err
	}
	list := compared()
	tasks := make([][]*reproduce.Task, len(lokiLimits))
	for n, l := range lokiLimits {
		for _, s := range list {
			tasks[n] = append(tasks[n], r.AddTask(fmt.Sprint("L1 ", s.Name, l.accuracy), 3, r.Seeds,
				func(ctx context.Context, seed uint64) (any, error) {
					return mostCarried(ctx, env, s, l, lokiMost, r.span(15*time.Second), seed)
				}))
		}
	}
	r.Report(func(o *reproduce.Outcome) error {
		var lines []plot.Line
		var names []string
		for n, l := range lokiLimits {
			at := reproduce.Setting("accuracy", "any")
			if l.accuracy > 0 {
				at = reproduce.Setting("accuracy", fmt.Sprintf("at least %v %%", l.accuracy))
			}
			line := plot.Line{Name: "accuracy: " + at["accuracy"]}
			only := reproduce.Each(tasks[n][1], number)
			for k, s := range list {
				each := reproduce.Each(tasks[n][k], number)
				line.Y = append(line.Y, reproduce.Mean(each))
				o.AddRow(row("L1", s.Name, "carried", "queries/s", at), each...)
				gain := row("L1", s.Name, "in parts of hardware scaling only", "", at)
				if s.Name == "loki" {
					gain = gain.WithPublished(lokiGain, lokiAbstract)
				}
				o.AddRow(gain, reproduce.Ratios(each, only)...)
				if n == 0 {
					names = append(names, s.Name)
				}
			}
			lines = append(lines, line)
		}
		o.AddChart("L1", "Loki: what 20 machines carry (modelled)", 1, reproduce.Bars("carried (queries/s)", names,
			lines...))
		o.Notes = append(o.Notes, "Figure L1: a load counts as carried when at most 5 % of the queries miss the "+
			"objective of 250 ms. Hardware scaling only is the system loki-hardware, which has the most accurate "+
			"variants. Both plan for a fifth more than comes, because queries arrive by chance. proteus plans by "+
			"stages and does not know what accuracy two of them have together.")
		return nil
	})
	return nil
}

// dayPeak is the rate at noon, in queries/s; the nights have a tenth of it.
const dayPeak = 700

// day is a load that rises from a tenth to its peak and falls again, between quiet nights.
func (r *runner) day() load {
	span := r.span(300 * time.Second)
	at := func(part float64) float64 { return part * span.Seconds() }
	return load{name: "day", linear: true, span: span, corners: []workload.Point{
		{At: 0, Rate: dayPeak / 10}, {At: at(0.2), Rate: dayPeak / 10}, {At: at(0.45), Rate: dayPeak},
		{At: at(0.55), Rate: dayPeak}, {At: at(0.8), Rate: dayPeak / 10}, {At: span.Seconds(), Rate: dayPeak / 10},
	}}
}

// lokiDay runs a day's load.
func lokiDay(r *runner) error {
	env, err := traffic().environment(r.Solver)
	if err != nil {
		return err
	}
	l := r.day()
	var names []string
	var tasks []*reproduce.Task
	for _, s := range compared() {
		names = append(names, s.Name)
		tasks = append(tasks, r.simulation("L2 "+s.Name, env, s, l))
	}
	r.Report(func(o *reproduce.Outcome) error {
		const night = 0.2 // both ends of the day; the first seconds are left out
		offPeak := func(x *outcome) float64 { return meanOf(x.active, 1-night, 1) }
		violations := func(x *outcome) float64 { return x.violations }
		for n, name := range names {
			o.AddRow(row("L2", name, "violations", "%", nil), reproduce.Each(tasks[n], violations)...)
			o.AddRow(row("L2", name, "accuracy of those in time", "%", nil),
				reproduce.Each(tasks[n], func(x *outcome) float64 { return x.accuracy })...)
			o.AddRow(row("L2", name, "machines off peak", "", nil), reproduce.Each(tasks[n], offPeak)...)
			if n == 0 {
				continue
			}
			less, fewer := row("L2", name, "violations in parts of loki's", "", nil),
				row("L2", name, "machines off peak in parts of loki's", "", nil)
			if name != "ipa" {
				less = less.WithPublished(lokiViolates, lokiAbstract+": up to, over systems before it")
			}
			if name == "proteus" {
				fewer = fewer.WithPublished(lokiOffPeak, "summaries of the text: up to")
			}
			o.AddRow(less, ratios(reproduce.Each(tasks[n], violations), reproduce.Each(tasks[0], violations))...)
			o.AddRow(fewer, ratios(reproduce.Each(tasks[n], offPeak), reproduce.Each(tasks[0], offPeak))...)
		}
		o.AddChart("L2", "Loki: a day's load on 20 machines (modelled)", 1,
			seconds("machines with an instance", names, tasks, func(x *outcome) []float64 { return x.active }),
			seconds("load (queries/s)", names[:1], tasks, func(x *outcome) []float64 { return x.offered }))
		o.Notes = append(o.Notes, "Figure L2: the load rises from a tenth of 700 queries/s to all of it and falls "+
			"again. Off peak is the last fifth of the time.")
		return nil
	})
	return nil
}

// ratios divides by what may be 0: it then says how many times a hundredth of a per cent.
func ratios(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for k := range a {
		out[k] = a[k] / max(b[k], 0.01)
	}
	return out
}

// simulation adds a run of a system under a load.
func (r *runner) simulation(key string, env *experiment.Environment, s systems.System, l load) *reproduce.Task {
	return r.AddTask(key, 1, r.Seeds, func(ctx context.Context, seed uint64) (any, error) {
		return simulate(ctx, env, s, l, seed)
	})
}

// seconds is a panel of one line for each task, of the first seed.
func seconds(name string, labels []string, tasks []*reproduce.Task, of func(*outcome) []float64) plot.Panel {
	p := plot.Panel{Name: name, XName: "time (s)", Low: 0, High: math.NaN()}
	for n, label := range labels {
		line := plot.Line{Name: label}
		for k, y := range of(tasks[n].Results[0].(*outcome)) {
			line.X, line.Y = append(line.X, float64(k)), append(line.Y, y)
		}
		p.Lines = append(p.Lines, line)
	}
	return p
}
