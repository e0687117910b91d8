package infless

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
)

// callTraces are the recorded traces of the paper, with a mean of 0, and mixtures of so many calls a minute.
var callTraces = []callTrace{{"sporadic", 0}, {"periodic", 0}, {"bursty", 0}, {"mixed", 0.1}, {"mixed", 0.3},
	{"mixed", 1}, {"mixed", 3}}

// coldIdleRatios are published idle times and cold starts of LSTH relative to HHP.
type coldIdleRatios struct{ idle, cold float64 }

// published16 has them by trace, for gamma 0.7, 0.5 and 0.3.
var published16 = map[string][]coldIdleRatios{
	"sporadic": {{0.875, 0.713}, {0.824, 0.748}, {0.841, 0.946}},
	"periodic": {{0.700, 0.838}, {0.673, 0.920}, {0.659, 0.827}},
	"bursty":   {{0.779, 0.913}, {0.715, 0.834}, {0.745, 0.710}},
}

var published16Names = []string{"lsth-0.7", "lsth-0.5", "lsth-0.3"}

// figure16 replays traces of seven days under keep-alive policies. On the first day policies learn; it is not counted.
func figure16(run *runner, f *reproduce.Sheet) error {
	all := make(map[traceKind][]reproduce.Runs[policyResults])
	for _, trace := range run.callTraces {
		for _, of := range keptNames {
			r := reproduce.Add(run.Runner, "cold starts of "+of+", "+trace.label(), 4, run.Seeds,
				func(_ context.Context, seed uint64) (policyResults, error) {
					calls, err := trace.calls(seed)
					if err != nil {
						return policyResults{}, err
					}
					return evaluatePolicies(of, calls), nil
				})
			kind := traceKind{"recorded", of}
			if trace.mean > 0 {
				kind.origin = "mixed"
			}
			all[kind] = append(all[kind], r)
			addTrace16(f, trace, of, r)
		}
	}
	for _, origin := range []string{"recorded", "mixed"} {
		for _, of := range keptNames {
			if kind := (traceKind{origin, of}); len(all[kind]) > 0 {
				addMeans16(f, kind, all[kind])
				f.Note(notes16[kind]...)
			}
		}
	}
	return nil
}

// keptNames are what a policy keeps.
var keptNames = []string{"app", "instances"}

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
func addTrace16(f *reproduce.Sheet, trace callTrace, of string, r reproduce.Runs[policyResults]) {
	at := f.At("trace", trace.label(), "of", of)
	// Numbers that are NaN, because a policy never has as few cold starts, have no row.
	each := func(number func(r policyResults) float64) reproduce.Values {
		return func() []float64 { return slices.DeleteFunc(r.Each(number)(), math.IsNaN) }
	}
	label := trace.label()
	panel := f.Chart(fmt.Sprintf("16-%s-%s", of, label), title(fmt.Sprintf("16: %s, %s", label, of)), 1).
		Panel("idle (h/day)", "cold starts (%)", 0, reproduce.Auto)
	for n, k := range keepPolicies {
		at.Row(k.name, "cold starts", "%", each(func(r policyResults) float64 { return r.chosen[n].cold }))
		at.Row(k.name, "idle", "h/day", each(func(r policyResults) float64 { return r.chosen[n].idle }))
		var published []coldIdleRatios
		if of == "instances" {
			published = published16[trace.name]
		}
		addRatios16(at, n, published, each)
		at.Row(k.name, "idle time for as many cold starts", "x", each(func(r policyResults) float64 {
			base := r.chosen[referenceIndex()]
			return idleAtColdRate(r.curve[n], base.cold) / base.idle
		}))
		panel.Curve(k.name, func() (x, y []float64) {
			for place := range k.sweep {
				x = append(x, each(func(r policyResults) float64 { return r.curve[n][place].cold }).Mean())
				y = append(y, each(func(r policyResults) float64 { return r.curve[n][place].idle }).Mean())
			}
			return x, y
		})
	}
}

// addRatios16 adds the rows of a policy, by its index, over the reference. published has those of LSTH.
func addRatios16(at reproduce.Place, n int, published []coldIdleRatios,
	each func(func(policyResults) float64) reproduce.Values) {
	base, name := referenceIndex(), keepPolicies[n].name
	cold := at.Row(name, "cold starts by HHP's", "x",
		each(func(r policyResults) float64 { return r.chosen[n].cold / r.chosen[base].cold }))
	idle := at.Row(name, "idle time by HHP's", "x",
		each(func(r policyResults) float64 { return r.chosen[n].idle / r.chosen[base].idle }))
	if g := slices.Index(published16Names, name); g >= 0 && published != nil {
		cold.Published(published[g].cold, source16)
		idle.Published(published[g].idle, source16)
	}
}

// addMeans16 adds the rows of the means over the traces of a kind.
func addMeans16(f *reproduce.Sheet, kind traceKind, all []reproduce.Runs[policyResults]) {
	var published []coldIdleRatios
	if kind == (traceKind{"recorded", "instances"}) {
		published = publishedMeans16()
	}
	for n := range keepPolicies {
		addRatios16(f.At("trace", "mean of the "+kind.origin, "of", kind.of), n, published,
			func(number func(r policyResults) float64) reproduce.Values {
				var list []reproduce.Values
				for _, r := range all {
					list = append(list, r.Each(number))
				}
				return reproduce.MeanOf(list...)
			})
	}
}

// publishedMeans16 are the means over the published traces. It adds in the order of the names of traces, because sums
// of floats depend on the order.
func publishedMeans16() []coldIdleRatios {
	out := make([]coldIdleRatios, len(published16Names))
	for _, trace := range slices.Sorted(maps.Keys(published16)) {
		for g, p := range published16[trace] {
			out[g].cold += p.cold / float64(len(published16))
			out[g].idle += p.idle / float64(len(published16))
		}
	}
	return out
}

const source16 = "Figure 16, plotting data; the text says 0.78 of the cold starts and 0.76 of the idle time " +
	"on average"

var notes16 = map[traceKind][]string{{"recorded", "app"}: {
	"Figure 16 replays invocations without a cluster. Of an app: something is warm or not when a call comes. Of " +
		"instances: the first, the second and so on are needed in minutes with so many calls, and each is kept by " +
		"itself. HHP looks back for four hours, as INFless has it, or (week) on all seven days, as its own paper has " +
		"it; the first day is for learning and not counted.",
	"Idle time for as many cold starts is read from the policy's trade-off curve where it has as many as HHP.",
}}
