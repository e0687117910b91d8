package cli

import (
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/policies"
	"github.com/sluice-serving/sluice/internal/measure/quantity"
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
					return fault.Errorf(fault.Usage, "%q is not understood", args)
				}
				begun := time.Now()
				o, sets, _, err := p.make(e)
				if err != nil {
					return err
				}
				took := time.Since(begun)
				if *p.asJSON {
					return writeJSON(e.Stdout, sets.All())
				}
				fmt.Fprintf(e.Stdout, "system %s, %d variants\n", o.System().Name, len(o.Spec().Variants))
				return printPolicies(e.Stdout, sets.All(), sets.Kept(), took)
			}
		},
	}
}

// printPolicies writes a line for each policy, and the folder in which they are kept, if there is one.
func printPolicies(w io.Writer, views []policies.Policy, kept string, took time.Duration) error {
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
				in = quantity.Number(*v.TookMS) + " ms"
				made++
				spent += *v.TookMS
			}
			rows = append(rows, []string{
				quantity.Rate(v.Rate), quantity.Accuracy(v.Accuracy), knownAccuracy(v.Median), knownAccuracy(v.Worst99),
				quantity.SmallShare(v.Violation), quantity.SmallShare(v.Busy), in, file,
			})
		}
		fmt.Fprintf(w, "\napp %s, workers of type %s\n\n", views[from].App, views[from].WorkerType)
		if err := columns(w, "rrrrrrrl", rows); err != nil {
			return err
		}
		from = to
	}
	if kept == "" {
		_, err := fmt.Fprintf(w, "\n%d policies, made in %v and not kept\n", len(views), took.Round(time.Millisecond))
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d policies, %d of them made now in %s ms; all took %v. They are kept in %s\n",
		len(views), made, quantity.Number(spent), took.Round(time.Millisecond), kept)
	return err
}

// knownAccuracy returns the text of an accuracy, empty if the planner does not compute it.
func knownAccuracy(x float64) string {
	if x == 0 {
		return ""
	}
	return quantity.Accuracy(x)
}
