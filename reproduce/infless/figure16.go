package infless

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/measure/report/plot"
	"github.com/sluice-serving/sluice/policy/scale"
	"github.com/sluice-serving/sluice/reproduce"
	"github.com/sluice-serving/sluice/serving"
)

// reference is the policy that the others are compared with.
const reference = "hybridhistogram"

// keepPolicy is a keep-alive policy with the parameter that trades cold starts for idle time: the tail percentile, or
// in minutes the window or the price of a cold start.
type keepPolicy struct {
	name  string
	at    float64
	sweep []float64 // values of the parameter for the trade-off curve
	make  func(at float64) scale.Keeper
}

var keepPolicies = []keepPolicy{
	{reference, 0.99, tails, func(tail float64) scale.Keeper { return hybrid(0, tail) }},
	{reference + "-week", 0.99, tails, func(tail float64) scale.Keeper { return hybrid(days*24*time.Hour, tail) }},
	{"lsth-0.7", 0.99, tails, longShort(0.7)},
	{"lsth-0.5", 0.99, tails, longShort(0.5)},
	{"lsth-0.3", 0.99, tails, longShort(0.3)},
	{"keepalive", 5, []float64{
		1, 2, 5, 10, 20, 30, 45, 60, 90, 120, 180, 240, 360, 480,
	}, func(at float64) scale.Keeper {
		return &scale.KeepAlive{For: minutes(at)}
	}},
	{"cheapest", scale.ColdPrice.Minutes(), []float64{
		2, 5, 10, 20, 30, 45, 60, 90, 120, 180, 240, 360, 480, 960,
	}, func(at float64) scale.Keeper {
		return scale.NewCheapest(minutes(at))
	}},
}

var tails = []float64{0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.999, 1}

func minutes(x float64) time.Duration { return time.Duration(x * float64(time.Minute)) }

func hybrid(tracked time.Duration, tail float64) scale.Keeper {
	k := scale.NewHybridHistogram(tracked)
	k.Tail = tail
	return k
}

func longShort(gamma float64) func(float64) scale.Keeper {
	return func(tail float64) scale.Keeper {
		k := scale.NewLSTH()
		k.Gamma, k.Tail = gamma, tail
		return k
	}
}

// callTraces are the recorded traces of the paper, with a mean of 0, and mixtures of so many calls a minute.
var callTraces = []struct {
	name string
	mean float64
}{{"sporadic", 0}, {"periodic", 0}, {"bursty", 0}, {"mixed", 0.1}, {"mixed", 0.3}, {"mixed", 1}, {"mixed", 3}}

// coldIdleRatios are published idle times and cold starts of LSTH relative to HHP.
type coldIdleRatios struct{ idle, cold float64 }

// published16 has them by trace, for gamma 0.7, 0.5 and 0.3.
var published16 = map[string][3]coldIdleRatios{
	"sporadic": {{0.875, 0.713}, {0.824, 0.748}, {0.841, 0.946}},
	"periodic": {{0.700, 0.838}, {0.673, 0.920}, {0.659, 0.827}},
	"bursty":   {{0.779, 0.913}, {0.715, 0.834}, {0.745, 0.710}},
}

var published16Names = []string{"lsth-0.7", "lsth-0.5", "lsth-0.3"}

// coldIdle is the result of a policy on a trace: cold starts in per cent of the calls, and idle hours a day.
type coldIdle struct{ cold, idle float64 }

// policyResults are the results of keepPolicies on a trace, by index in keepPolicies.
type policyResults struct {
	chosen []coldIdle
	curve  [][]coldIdle // then by index in the policy's sweep
}

// figure16 replays traces of seven days under keep-alive policies. On the first day policies learn; it is not counted.
func figure16(run *runner) error {
	base := slices.IndexFunc(keepPolicies, func(k keepPolicy) bool { return k.name == reference })
	tasksByKind := make(map[[2]string][]*reproduce.Task) // by whether recorded or mixed, and of what
	for _, x := range callTraces {
		for _, of := range []string{"app", "instances"} {
			name := x.name
			if x.mean > 0 {
				name = fmt.Sprintf("%s, %v a minute", x.name, x.mean)
			}
			t := run.AddTask("cold starts of "+of+", "+name, 4, run.Seeds,
				func(_ context.Context, seed uint64) (any, error) {
					calls := drawMixture(max(x.mean, 0.001), seed)
					if x.mean == 0 {
						var err error
						if calls, err = drawRecorded(x.name, seed); err != nil {
							return nil, err
						}
					}
					var out policyResults
					for _, k := range keepPolicies {
						out.chosen = append(out.chosen, evaluate(of, calls, func() scale.Keeper { return k.make(k.at) }))
						var curve []coldIdle
						for _, at := range k.sweep {
							curve = append(curve, evaluate(of, calls, func() scale.Keeper { return k.make(at) }))
						}
						out.curve = append(out.curve, curve)
					}
					return out, nil
				})
			kind := [2]string{"recorded", of}
			if x.mean > 0 {
				kind[0] = "mixed"
			}
			tasksByKind[kind] = append(tasksByKind[kind], t)
			run.Report(func(o *reproduce.Outcome) error {
				where := reproduce.Setting("trace", name, "of", of)
				each := func(f func(a policyResults) float64) (out []float64) {
					for _, d := range t.Results {
						if v := f(d.(policyResults)); !math.IsNaN(v) {
							out = append(out, v)
						}
					}
					return out
				}
				var lines []plot.Line
				for n, k := range keepPolicies {
					cold := row("16", k.name, coldRow, "x", where)
					idle := row("16", k.name, idleRow, "x", where)
					if p, ok := published16[x.name]; ok && of == "instances" {
						if g := slices.Index(published16Names, k.name); g >= 0 {
							cold = cold.WithPublished(p[g].cold, source16)
							idle = idle.WithPublished(p[g].idle, source16)
						}
					}
					o.AddRow(row("16", k.name, "cold starts", "%", where), each(func(a policyResults) float64 {
						return a.chosen[n].cold
					})...)
					o.AddRow(row("16", k.name, "idle", "h/day", where), each(func(a policyResults) float64 {
						return a.chosen[n].idle
					})...)
					o.AddRow(cold,
						each(func(a policyResults) float64 { return a.chosen[n].cold / a.chosen[base].cold })...)
					o.AddRow(idle,
						each(func(a policyResults) float64 { return a.chosen[n].idle / a.chosen[base].idle })...)
					o.AddRow(row("16", k.name, "idle time for as many cold starts", "x", where),
						each(func(a policyResults) float64 {
							return idleAtColdRate(a.curve[n], a.chosen[base].cold) / a.chosen[base].idle
						})...)
					line := plot.Line{Name: k.name}
					for at := range k.sweep {
						line.X = append(line.X,
							reproduce.Mean(each(func(a policyResults) float64 { return a.curve[n][at].cold })))
						line.Y = append(line.Y,
							reproduce.Mean(each(func(a policyResults) float64 { return a.curve[n][at].idle })))
					}
					lines = append(lines, line)
				}
				addChart(o, fmt.Sprintf("16-%s-%s", of, name), fmt.Sprintf("16: %s, %s", name, of), 1,
					plot.Panel{Name: "idle (h/day)", XName: "cold starts (%)", Lines: lines, Low: 0, High: math.NaN()})
				return nil
			})
		}
	}
	for _, kind := range [][2]string{
		{"recorded", "app"}, {"recorded", "instances"}, {"mixed", "app"}, {"mixed", "instances"},
	} {
		tasks := tasksByKind[kind]
		if len(tasks) == 0 {
			continue
		}
		run.Report(func(o *reproduce.Outcome) error {
			where := reproduce.Setting("trace", "mean of the "+kind[0], "of", kind[1])
			for n, k := range keepPolicies {
				each := func(f func(a policyResults) float64) []float64 {
					out := make([]float64, run.Seeds)
					for _, t := range tasks {
						for seed, d := range t.Results {
							out[seed] += f(d.(policyResults)) / float64(len(tasks))
						}
					}
					return out
				}
				cold, idle := row("16", k.name, coldRow, "x", where), row("16", k.name, idleRow, "x", where)
				if g := slices.Index(published16Names, k.name); g >= 0 && kind == [2]string{"recorded", "instances"} {
					var mean coldIdleRatios
					// in one order, because sums of floats depend on it
					for _, trace := range slices.Sorted(maps.Keys(published16)) {
						p := published16[trace][g]
						mean.cold, mean.idle = mean.cold+p.cold/float64(len(published16)),
							mean.idle+p.idle/float64(len(published16))
					}
					cold, idle = cold.WithPublished(mean.cold, source16), idle.WithPublished(mean.idle, source16)
				}
				o.AddRow(cold, each(func(a policyResults) float64 { return a.chosen[n].cold / a.chosen[base].cold })...)
				o.AddRow(idle, each(func(a policyResults) float64 { return a.chosen[n].idle / a.chosen[base].idle })...)
			}
			o.Notes = append(o.Notes, notes16[kind]...)
			return nil
		})
	}
	return nil
}

const (
	coldRow, idleRow = "cold starts by HHP's", "idle time by HHP's"
	source16         = "Figure 16, plotting data; the text says 0.78 of the cold starts and 0.76 of the idle time " +
		"on average"
)

var notes16 = map[[2]string][]string{{"recorded", "app"}: {
	"Figure 16 replays invocations without a cluster. Of an app: something is warm or not when a call comes. Of " +
		"instances: the first, the second and so on are needed in minutes with so many calls, and each is kept by " +
		"itself. HHP looks back for four hours, as INFless has it, or (week) on all seven days, as its own paper has " +
		"it; the first day is for learning and not counted.",
	"Idle time for as many cold starts is read from the policy's trade-off curve where it has as many as HHP.",
}}

// evaluate replays calls under a policy: those of an app, which run for no time, or those of each of its instances,
// which are busy for whole minutes.
func evaluate(of string, calls []serving.Time, keeper func() scale.Keeper) coldIdle {
	const day, end = serving.Time(24 * time.Hour), days * serving.Time(24*time.Hour)
	if of == "app" {
		t := replay(keeper(), calls, 0, day, end)
		return coldIdle{t.coldPercent(), t.idleHoursPerDay()}
	}
	var sum coldCount
	for _, s := range callsByInstance(calls) {
		t := replay(keeper(), s, time.Minute, day, end)
		sum.calls, sum.cold, sum.idle, sum.span = sum.calls+t.calls, sum.cold+t.cold, sum.idle+t.idle, t.span
	}
	return coldIdle{sum.coldPercent(), sum.idleHoursPerDay()}
}

// idleAtColdRate returns the least idle time at which a policy has the given rate of cold starts, by linear
// interpolation along its curve; NaN where no point has as few.
func idleAtColdRate(curve []coldIdle, rate float64) float64 {
	best := math.NaN()
	for k, c := range curve {
		if c.cold <= rate && !(best <= c.idle) {
			best = c.idle
		}
		if k == 0 {
			continue
		}
		p := curve[k-1]
		if (p.cold-rate)*(c.cold-rate) < 0 {
			if h := p.idle + (c.idle-p.idle)*(p.cold-rate)/(p.cold-c.cold); !(best <= h) {
				best = h
			}
		}
	}
	return best
}
