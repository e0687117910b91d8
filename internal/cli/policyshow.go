package cli

import (
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/policies"
	"github.com/sluice-serving/sluice/internal/measure/quantity"
)

func policyShowCommand() command {
	return command{
		name: "policy show", summary: "what the policy for a rate runs in every state of a queue",
		usage: "-f sluice.yaml --rate 100 [--app NAME] [--worker-type NAME]",
		about: `
Prints the policy that is in force when queries arrive at the rate: a row for each length of the queue, a column
for each variant, and in it the time left to the first deadline, in ms, with which the variant runs. All that
waits goes into the batch, unless numbers of queries stand behind the time.`,
		examples: "sluice policy show -f sluice.yaml --rate 100\nsluice policy " +
			"show -f sluice.yaml --rate 100 --json",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			p := declarePolicy(fs, "make or find policies for these `rates` in queries/s only, separated by commas")
			rate := fs.Float64("rate", 0, "arrival `rate` in queries/s; needed")
			app := fs.String("app", "", "the `app`, where there are several")
			workerType := fs.String("worker-type", "", "`name` of the type of worker, where there are several")
			return func(e *Env, args []string) error {
				if len(args) > 0 {
					return fault.Errorf(fault.Usage, "%q is not understood", args)
				}
				if !(*rate > 0) {
					return fault.Errorf(fault.Usage,
						"--rate is needed: the arrival rate in queries/s whose policy to show")
				}
				_, sets, _, err := p.make(e)
				if err != nil {
					return err
				}
				tables, err := sets.Tables(*app, *workerType, *rate)
				if err != nil {
					return err
				}
				if *p.asJSON {
					return writeJSON(e.Stdout, tables)
				}
				for i := range tables {
					if i > 0 {
						fmt.Fprintln(e.Stdout)
					}
					if err := printPolicy(e.Stdout, &tables[i]); err != nil {
						return err
					}
				}
				return nil
			}
		},
	}
}

func printPolicy(w io.Writer, t *policies.Table) error {
	span := fmt.Sprintf("above %s", quantity.Rate(t.From))
	if t.To != nil {
		span = fmt.Sprintf("from %s to %s", quantity.Rate(t.From), quantity.Rate(*t.To))
	}
	fmt.Fprintf(w, "app %s, workers of type %s: the policy for %s, in force %s\n", t.App, t.WorkerType,
		quantity.Rate(t.Rate), span)
	more := ""
	if t.Worst99 > 0 {
		more = fmt.Sprintf(" (median %s, 99 %% of the queries at least %s)", quantity.Accuracy(t.Median),
			quantity.Accuracy(t.Worst99))
	}
	fmt.Fprintf(w, "expected: accuracy %s%s, violations %s, workers busy %s\n\n", quantity.Accuracy(t.Accuracy), more,
		quantity.SmallShare(t.Violation), quantity.SmallShare(t.Busy))
	head := []string{"QUEUE"}
	for _, v := range t.Variants {
		head = append(head, v.Name)
	}
	rows := [][]string{head}
	for _, r := range t.Rows {
		row := make([]string, 1+len(t.Variants))
		row[0] = fmt.Sprint(r.Queue)
		for from := 0; from < len(r.Runs); {
			to := from + 1
			for to < len(r.Runs) && r.Runs[to].At == r.Runs[from].At {
				to++
			}
			cell := &row[1+r.Runs[from].At]
			if *cell != "" {
				*cell += ", "
			}
			*cell += runsText(r.Runs[from:to], r.Queue)
			from = to
		}
		rows = append(rows, row)
	}
	if err := columns(w, "r"+strings.Repeat("l", len(t.Variants)), rows); err != nil {
		return err
	}
	var legend []string
	for _, v := range t.Variants {
		legend = append(legend, v.Name+" "+quantity.Accuracy(v.Accuracy))
	}
	fmt.Fprintf(w,
		"\nCells: ms to the first deadline (objective %s ms) with which the variant runs; × takes so many queries, "+
			"otherwise all that wait.\nAccuracies: %s. A longer queue is treated like the longest with no time left.\n",
		quantity.Number(t.SLOMS), strings.Join(legend, ", "))
	return nil
}

// runsText writes adjacent runs of one variant: their range of slack and the batch.
func runsText(runs []policies.Run, queue int) string {
	last := &runs[len(runs)-1]
	text := fmt.Sprintf("%s-%s", quantity.Number(runs[0].FromMS), quantity.Number(last.ToMS))
	if last.Last {
		text = quantity.Number(runs[0].FromMS) + "+"
	}
	least, most := queue, 0
	for _, r := range runs {
		least, most = min(least, r.Queries), max(most, r.Queries)
	}
	switch least {
	case queue:
		return text
	case most:
		return fmt.Sprintf("%s × %d", text, least)
	}
	return fmt.Sprintf("%s × %d..%d", text, least, most)
}
