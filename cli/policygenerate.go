package cli

import (
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"time"
)

func policyGenerateCommand() command {
	return command{
		name: "policy generate", summary: "make the set of policies and say what each promises",
		usage: "-f sluice.yaml [--rates 50,100,200]",
		about: `
Makes a policy for each of several arrival rates, spaced so that neighbours differ by at most 1 % in accuracy
(system option step), from next to nothing up to more than the workers carry; or for the rates of --rates. What
is there already is found and not made again. A line for each says what it promises while arrivals come at its
rate: the accuracy and the share of late queries, the accuracy that half and 99 % of the queries get at least,
and how busy the workers are.`,
		examples: "sluice policy generate -f sluice.yaml\nsluice policy generate -f sluice.yaml --rates 50,100,200 " +
			"--json\nsluice policy generate -f sluice.yaml --system ramsis-variable",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			p := declarePolicy(fs,
				"make policies for these `rates` in queries/s, separated by commas, instead of spacing them")
			return func(e *Env, args []string) error {
				if len(args) > 0 {
					return exit(ExitUsage, "%q is not understood", args)
				}
				if *p.rates != "" {
					rates, err := parseRates(*p.rates)
					if err != nil {
						return err
					}
					*p.rates = joinRates(rates)
				}
				begun := time.Now()
				sets, err := p.open(e)
				if err != nil {
					return err
				}
				took := time.Since(begun)
				var views []policyView
				for i := range sets.plan.Policies {
					set := &sets.plan.Policies[i]
					for k := range set.ByRate {
						views = append(views, sets.view(set, &set.ByRate[k]))
					}
				}
				if *p.asJSON {
					return writeJSON(e.Stdout, views)
				}
				return printPolicies(e.Stdout, sets, views, took)
			}
		},
	}
}

func printPolicies(w io.Writer, s *policySets, views []policyView, took time.Duration) error {
	fmt.Fprintf(w, "system %s, %d variants\n", s.world.system.Name, len(s.world.Spec.Variants))
	made, spent := 0, 0.0
	for from := 0; from < len(views); {
		to := from
		rows := [][]string{{"RATE", "ACCURACY", "MEDIAN", "WORST 99 %", "VIOLATIONS", "BUSY", "MADE IN", "KEPT AS"}}
		for ; to < len(views) && views[to].App == views[from].App &&
			views[to].WorkerType == views[from].WorkerType; to++ {
			v := &views[to]
			in, file := "found", ""
			if v.File != "" {
				file = filepath.Base(v.File)
			} else {
				in = "" // planners that keep nothing make policies in no time
			}
			if v.TookMS != nil {
				in = number(*v.TookMS) + " ms"
				made++
				spent += *v.TookMS
			}
			rows = append(rows, []string{
				rateText(v.Rate), accuracyText(v.Accuracy), knownAccuracy(v.Median), knownAccuracy(v.Worst99),
				shareText(v.Violation), shareText(v.Busy), in, file,
			})
		}
		fmt.Fprintf(w, "\napp %s, workers of type %s\n\n", views[from].App, views[from].WorkerType)
		if err := columns(w, "rrrrrrrl", rows); err != nil {
			return err
		}
		from = to
	}
	if len(s.notes.notes) == 0 {
		_, err := fmt.Fprintf(w, "\n%d policies, made in %v and not kept\n", len(views), took.Round(time.Millisecond))
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d policies, %d of them made now in %s ms; all took %v. They are kept in %s\n",
		len(views), made, number(spent), took.Round(time.Millisecond), s.world.making.dir)
	return err
}

// shareText writes a small share in per cent so that next to nothing is told from nothing.
func shareText(x float64) string {
	switch {
	case x < 0:
		return "-" // no promise
	case x == 0:
		return "0 %"
	case x < 5e-6:
		return "< 0.001 %"
	case x < 0.01:
		return fmt.Sprintf("%.3f %%", 100*x)
	}
	return fmt.Sprintf("%.1f %%", 100*x)
}

// knownAccuracy leaves out what a planner does not work out.
func knownAccuracy(x float64) string {
	if x == 0 {
		return ""
	}
	return accuracyText(x)
}

func joinRates(rates []float64) string {
	out := ""
	for i, r := range rates {
		if i > 0 {
			out += ","
		}
		out += fmt.Sprintf("%g", r)
	}
	return out
}
