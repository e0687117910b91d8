package cli

import (
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/load"
	"github.com/sluice-serving/sluice/serving/workload"
)

// workloadFlags are the flags that describe a load, for load and simulate. Their names follow perf_analyzer where
// possible.
type workloadFlags struct {
	file, app, rateRange, rates, distribution, trace, interpolate, lengths *string
	shape, minAccuracy                                                     *float64
	duration, timeout                                                      *time.Duration
	items, priority                                                        *int
	seed                                                                   *uint64
}

func declareWorkload(fs *flag.FlagSet) *workloadFlags {
	return &workloadFlags{
		file: fs.String("workload", "", "workload `file` (YAML) instead of the flags below"),
		app:  fs.String("app", "", "the `app` to call; needed when there are several"),
		rateRange: fs.String("request-rate-range", "",
			"queries/s, or `start:end:step` to try several rates one after another"),
		rates:       fs.String("rates", "", "a rate that changes: `second:rate,...`, such as 0:50,10:200,20:50"),
		interpolate: fs.String("interpolate", "step", "between the rates of --rates: step or linear"),
		distribution: fs.String("request-distribution", "poisson",
			"`kind` of gaps: poisson, poisson-ms (whole milliseconds), uniform (constant), gamma or trace"),
		shape: fs.Float64("shape", 0.5, "`shape` of gamma gaps; small is bursty, 1 is poisson"),
		trace: fs.String("trace", "",
			"`file` of arrival times in ms, one a line, with --request-distribution trace"),
		duration: fs.Duration("duration", 30*time.Second, "length of the load, a `duration`"),
		items: fs.Int("batch-size", 0,
			"`inputs` in every query; 0 takes apps[].items of the configuration, or 1"),
		lengths: fs.String("lengths", "",
			"lengths of the queries: a `file`, one a line, or median:spread:most, log-normal, such as 64:0.9:512"),
		priority:    fs.Int("priority", 0, "`priority` of every query, 1 the highest; 0 is the default, behind all"),
		timeout:     fs.Duration("deadline", 0, "deadline of every query, a `duration`; 0 takes the app's objective"),
		minAccuracy: fs.Float64("min-accuracy", 0, "`accuracy` in [0, 1] below which no answer is wanted"),
		seed:        fs.Uint64("seed", 1, "`seed` of everything random"),
	}
}

// specs returns the workloads that the flags describe, one for each rate to try. sizes are the query sizes that a
// configuration expects.
func (w *workloadFlags) specs(apps []string, samples map[string]int32, sizes map[string]workload.ItemsSpec) (
	[]workload.Spec, error) {
	if *w.file != "" {
		s, err := load.ReadWorkload(*w.file)
		if err != nil {
			return nil, err
		}
		for i := range s.Apps {
			s.Apps[i].Samples = samples[s.Apps[i].App]
		}
		return []workload.Spec{*s}, nil
	}
	app := *w.app
	if app == "" {
		if len(apps) != 1 {
			return nil, fault.Errorf(fault.Usage, "--app is needed: there are %s", strings.Join(apps, ", "))
		}
		app = apps[0]
	}
	items := sizes[app]
	if *w.items != 0 {
		items = workload.ItemsSpec{Value: int32(*w.items)}
	}
	a := workload.AppSpec{App: app, Process: *w.distribution, Shape: *w.shape, Items: items,
		Priority:  int32(*w.priority),
		TimeoutMS: float64(*w.timeout) / 1e6, MinAccuracy: *w.minAccuracy, Samples: samples[app]}
	if a.Process != "gamma" {
		a.Shape = 0
	}
	if *w.lengths != "" {
		var err error
		if a.Lengths, err = readLengths(*w.lengths); err != nil {
			return nil, err
		}
	}
	one := workload.Spec{Seed: *w.seed, DurationS: w.duration.Seconds()}
	switch {
	case *w.trace != "" || a.Process == "trace":
		if *w.trace == "" {
			return nil, fault.Errorf(fault.Usage, "--request-distribution trace needs --trace FILE")
		}
		times, err := load.ReadTrace(*w.trace)
		if err != nil {
			return nil, err
		}
		a.Process, a.Trace, one.DurationS = "trace", times, 0
	case *w.rates != "":
		segments, err := workload.ParseRates(*w.rates)
		if err != nil {
			return nil, fault.Errorf(fault.Usage, "--rates: %v", err)
		}
		a.Rates, a.Interpolate = segments, *w.interpolate
	case *w.rateRange != "":
		rates, err := workload.ParseRange(*w.rateRange)
		if err != nil {
			return nil, fault.Errorf(fault.Usage, "--request-rate-range: %v", err)
		}
		var out []workload.Spec
		for _, r := range rates {
			s, b := one, a
			b.Rate = r
			s.Apps = []workload.AppSpec{b}
			out = append(out, s)
		}
		return out, nil
	default:
		return nil, fault.Errorf(fault.Usage, "say how much: --request-rate-range, --rates, --trace or --workload")
	}
	one.Apps = []workload.AppSpec{a}
	return []workload.Spec{one}, nil
}

// readLengths reads the flag --lengths.
func readLengths(text string) (workload.ItemsSpec, error) {
	if out, err := workload.ParseLogNormal(text); err == nil {
		return out, nil
	} else if strings.Count(text, ":") == 2 {
		return out, fault.Errorf(fault.Usage, "--lengths: %v", err)
	}
	list, err := load.ReadList(text)
	return workload.ItemsSpec{Distribution: "file", File: text, Listed: list}, err
}

// span returns a description of a workload in one line.
func span(s *workload.Spec) string {
	var parts []string
	for _, a := range s.Apps {
		rate := "a changing rate"
		switch {
		case a.Process == "trace":
			rate = "a trace"
		case a.Process == "sessions":
			rate = fmt.Sprintf("%d clients", a.Sessions.Clients+a.Sessions.Always)
		case len(a.Rates) == 0:
			rate = fmt.Sprintf("%g queries/s", a.Rate)
		}
		process := a.Process
		if process == "" {
			process = "poisson"
		}
		if process != "trace" && process != "sessions" {
			rate += " (" + process + ")"
		}
		parts = append(parts, a.App+": "+rate)
	}
	return fmt.Sprintf("%s for %v, seed %d", strings.Join(parts, ", "), s.Duration(), s.Seed)
}
