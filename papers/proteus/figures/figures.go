package proteus

import (
	"slices"
	"strconv"

	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/papers/reproduce"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
)

// variant is a system with changed options.
type variant struct {
	label, system string
	change        func(*systems.System)
}

// addVariant adds a task that runs a variant on a trace.
func (run *runner) addVariant(v variant, t *trace) runs {
	j := newJob(run.cluster, reproduce.System(v.system), t)
	if v.change != nil {
		v.change(&j.System)
	}
	return run.add(v.label+" on "+t.name, j)
}

// ablations are the systems of §6.5.
var ablations = []string{
	"proteus", "proteus-without-placement", "proteus-without-selection", "proteus-without-adaptive-batching",
	"proteus-without-query-assignment",
}

// simplified are further ablations, ours.
var simplified = []variant{
	{"proteus at a head-room of 5 %", "proteus", func(s *systems.System) { s.Options.Planning.Slack = -1 }},
	{"proteus planned every 30 s, bursts or not", "proteus", func(s *systems.System) {
		s.Scaler, s.Options.Replan = "periodic", 0
	}},
}

// publishedViolations are the overall violations that §6.5 names, in per cent.
var publishedViolations = map[string]float64{"proteus-without-selection": 18, "proteus-without-query-assignment": 10}

// figure7 takes parts of Proteus away (§6.5).
func figure7(run *runner, f *reproduce.Sheet) error {
	for _, t := range []*trace{run.trace(authorsTrace), run.trace(heavyTrace)} {
		at := f.At("trace", t.name)
		var all []runs
		for _, name := range ablations {
			r := run.addSystem(name, t)
			rows := reproduce.AddRows(at, name, r, totals)
			if t.name == authorsTrace {
				rows[violationRow].Published(reproduce.In(publishedViolations, name), "§6.5, Figure 7")
			}
			all = append(all, r)
		}
		for _, v := range simplified {
			reproduce.AddRows(at, v.label, run.addVariant(v, t), totals)
		}
		overTime(f, t, ablations, all)
	}
	return nil
}

// figure8 varies objectives from 1 to 3.5 times the latency of the fastest CPU variant (§6.6). The sets are the
// authors' own; their third has a multiple of 2.1 where the paper says 2.
func figure8(run *runner, f *reproduce.Sheet) error {
	multiples, slos, err := readObjectives(run.spec)
	if err != nil {
		return err
	}
	t := run.trace(authorsTrace)
	c := f.Chart("8", "Proteus, Figure 8: "+t.name, 3)
	const axis = "SLO (times the fastest CPU variant)"
	served := c.Panel("Throughput (queries/s)", axis, reproduce.Auto, reproduce.Auto)
	drop := c.Panel("Maximum accuracy drop (points)", axis, 0, reproduce.Auto)
	missed := c.Panel("SLO violations (%)", axis, 0, reproduce.Auto)
	for _, x := range multiples {
		w, err := newEnvironment(run.Solver, setup{slos: slos[x]})
		if err != nil {
			return err
		}
		times, err := strconv.ParseFloat(x, 64)
		if err != nil {
			return err
		}
		for _, name := range comparedSystems {
			r := run.add(name+" at "+x+" times", newJob(w, reproduce.System(name), t))
			reproduce.AddRows(f.At("SLO", x+" times"), name, r, totals)
			served.Point(name, times, r.Each(func(r *result) float64 { return r.throughput }))
			drop.Point(name, times, r.Each(func(r *result) float64 { return 100 * r.drop }))
			missed.Point(name, times, r.Each(violations))
		}
	}
	return nil
}

// figure9 shows Proteus by model family (§6.7), and beside it the goal that the paper leaves open (§7): the smallest
// accuracy of a family.
func figure9(run *runner, f *reproduce.Sheet) error {
	t := run.trace(heavyTrace)
	c := f.Chart("9", "Proteus, Figure 9: "+t.name, 0)
	accuracy := c.Panel("Effective accuracy (%)", "", reproduce.Auto, 100)
	missed := c.Panel("SLO violations (%)", "", 0, reproduce.Auto)
	for _, name := range []string{"proteus", "proteus-fair"} {
		r := run.addSystem(name, t)
		for a, app := range run.spec.Apps {
			at := f.At("trace", t.name, "family", app.Name)
			of := func(number func(familyResult) float64) reproduce.Values {
				return r.Each(func(r *result) float64 { return number(r.family(serving.AppID(a))) })
			}
			late := of(func(x familyResult) float64 { return 100 * x.violations })
			exact := of(func(x familyResult) float64 { return 100 * x.accuracy })
			at.Row(name, throughputRow, "/s", of(func(x familyResult) float64 { return x.throughput }))
			at.Row(name, accuracyRow, "%", exact)
			at.Row(name, dropRow, "points", of(func(x familyResult) float64 { return 100 * x.drop }))
			at.Row(name, violationRow, "%", late)
			accuracy.Bar(name, app.Name, exact)
			missed.Bar(name, app.Name, late)
		}
	}
	return nil
}

// familyResult is the result of a run for one app.
type familyResult struct{ throughput, accuracy, drop, violations float64 }

func (r *result) family(a serving.AppID) familyResult {
	x := &r.Report.Apps[a]
	out := familyResult{throughput: x.Throughput, violations: x.ViolationRatio}
	if x.EffectiveAccuracy != nil {
		out.accuracy = *x.EffectiveAccuracy
	}
	if x.MaxAccuracyDrop != nil {
		out.drop = *x.MaxAccuracyDrop
	}
	return out
}

// arrivals is a kind of gaps between queries.
type arrivals struct {
	name string
	gaps func() (workload.Gaps, error)
}

var (
	uniform = func() (workload.Gaps, error) { return workload.Uniform{}, nil }
	poisson = func() (workload.Gaps, error) { return workload.Poisson{}, nil }
	clumped = func() (workload.Gaps, error) { return workload.NewGamma(0.05) } // of 20 on average
)

// clumpedVariants are the systems of Figure clumps.
var clumpedVariants = []variant{
	{"proteus", "proteus", nil},
	{"proteus-headroom", "proteus-headroom", nil},
	{"infaas-accuracy", "infaas-accuracy", nil},
	{"sommelier", "sommelier", nil},
	{"proteus, three times the head-room", "proteus", func(s *systems.System) { s.Options.Planning.Headroom = 3 }},
	{"proteus, nothing given up", "proteus", func(s *systems.System) {
		p := &s.Options.Planning
		p.Slack, p.Tolerance, p.Gap = -1, -1, 0.0005
	}},
}

// figureClumps runs systems on traces whose queries come in clumps.
func figureClumps(run *runner, f *reproduce.Sheet) error {
	for _, of := range []*trace{run.trace(authorsTrace), run.trace(authorsTrace).level()} {
		for _, g := range []arrivals{{"flat", uniform}, {"Poisson", poisson}, {"clumps of 20", clumped}} {
			at := f.At("trace", of.name, "arrivals", g.name)
			for _, v := range clumpedVariants {
				reproduce.AddRows(at, v.label, run.addVariant(v, of.withGaps(g.name, g.gaps)), totals)
			}
		}
	}
	return nil
}

func indexOf[T any](list []T, is func(*T) bool) int {
	return slices.IndexFunc(list, func(x T) bool { return is(&x) })
}
