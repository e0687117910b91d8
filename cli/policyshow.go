package cli

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sluice-serving/sluice/measure/report/plot"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
)

func policyShowCommand() command {
	return command{
		name: "policy show", summary: "what the policy for a rate runs in every state of a queue",
		usage: "-f sluice.yaml --rate 100 [--app NAME] [--worker-type NAME]",
		about: `
Prints the policy that is in force when queries arrive at the rate: a row for each length of the queue, a column
for each variant, and in it the time left to the first deadline, in ms, with which the variant runs. All that
waits goes into the batch, unless numbers of queries stand behind the time. --out draws it as a map.`,
		examples: "sluice policy show -f sluice.yaml --rate 100\nsluice policy show -f sluice.yaml --rate 100 --out " +
			"plots\nsluice policy show -f sluice.yaml --rate 100 --json",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			p := declarePolicy(fs, "make or find policies for these `rates` in queries/s only, separated by commas")
			rate := fs.Float64("rate", 0, "arrival `rate` in queries/s; needed")
			app := fs.String("app", "", "`name` of the app, where there are several")
			workerType := fs.String("worker-type", "", "`name` of the type of worker, where there are several")
			out := fs.String("out", "", "`folder` for the map, as PNG and SVG")
			return func(e *Env, args []string) error {
				if len(args) > 0 {
					return exit(ExitUsage, "%q is not understood", args)
				}
				if !(*rate > 0) {
					return exit(ExitUsage, "--rate is needed: the arrival rate in queries/s whose policy to show")
				}
				sets, err := p.open(e)
				if err != nil {
					return err
				}
				some, err := sets.only(*app, *workerType)
				if err != nil {
					return err
				}
				var tables []policyTable
				for _, set := range some {
					tables = append(tables, sets.table(set, *rate))
				}
				if *p.asJSON {
					err = writeJSON(e.Stdout, tables)
				} else {
					for i := range tables {
						if i > 0 {
							fmt.Fprintln(e.Stdout)
						}
						if err := printPolicy(e.Stdout, &tables[i]); err != nil {
							return err
						}
					}
				}
				if err != nil || *out == "" {
					return err
				}
				files, err := plotPolicies(*out, tables)
				if err == nil && !*p.asJSON {
					fmt.Fprintf(e.Stdout, "\nwritten: %s\n", strings.Join(files, ", "))
				}
				return err
			}
		},
	}
}

// policyTable is a policy state by state.
type policyTable struct {
	policyView
	// From and To are the rates between which the policy is in force, in queries/s; nil To has no end.
	From     float64      `json:"from"`
	To       *float64     `json:"to,omitempty"`
	SLOMS    float64      `json:"slo_ms"`
	Variants []usedView   `json:"variants"` // that the policy uses, the least accurate first
	Rows     []policyRow  `json:"rows"`
	policy   *plan.Policy // to draw
	order    map[serving.VariantID]int
}

type usedView struct {
	Name     string  `json:"name"`
	Accuracy float64 `json:"accuracy"`
}

// policyRow is a length of the queue.
type policyRow struct {
	Queue int         `json:"queue"` // queries
	Runs  []policyRun `json:"runs"`
}

// policyRun is a stretch of slack in which the same is done.
type policyRun struct {
	FromMS  float64 `json:"from_ms"` // to the first deadline
	ToMS    float64 `json:"to_ms"`   // the next run begins there; the last holds for all that is more
	Variant string  `json:"variant"`
	Queries int     `json:"queries"`
	last    bool
	at      int // of the variant among those used
}

func (s *policySets) table(set *plan.Policies, rate float64) policyTable {
	p := set.At(rate)
	out := policyTable{
		policyView: s.view(set, p), SLOMS: millis(s.world.Spec.Apps[s.app(set)].SLO.Latency), policy: p,
		order: make(map[serving.VariantID]int),
	}
	for i := range set.ByRate {
		if set.ByRate[i].Rate < p.Rate {
			out.From = set.ByRate[i].Rate
		}
	}
	if p.Rate < set.ByRate[len(set.ByRate)-1].Rate {
		out.To = &p.Rate
	}
	spec := s.world.Spec
	var used []serving.VariantID
	for _, c := range p.Choices {
		if !slices.Contains(used, c.Variant) {
			used = append(used, c.Variant)
		}
	}
	slices.SortFunc(used, func(a, b serving.VariantID) int {
		return cmp.Or(cmp.Compare(spec.Variants[a].Accuracy, spec.Variants[b].Accuracy), cmp.Compare(a, b))
	})
	for at, v := range used {
		out.order[v] = at
		out.Variants = append(out.Variants, usedView{spec.Variants[v].Name, spec.Variants[v].Accuracy})
	}
	n := len(p.Slacks)
	for q := 1; q <= len(p.Choices)/n; q++ {
		row := policyRow{Queue: q}
		for from := 0; from < n; {
			c, to := p.Choices[(q-1)*n+from], from+1
			for to < n && p.Choices[(q-1)*n+to] == c {
				to++
			}
			run := policyRun{
				FromMS: millis(p.Slacks[from]), Variant: spec.Variants[c.Variant].Name, Queries: int(c.Queries),
				last: to == n, at: out.order[c.Variant],
			}
			if run.ToMS = millis(p.Slacks[n-1]); to < n {
				run.ToMS = millis(p.Slacks[to])
			}
			row.Runs = append(row.Runs, run)
			from = to
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

func printPolicy(w io.Writer, t *policyTable) error {
	span := fmt.Sprintf("above %s", rateText(t.From))
	if t.To != nil {
		span = fmt.Sprintf("from %s to %s", rateText(t.From), rateText(*t.To))
	}
	fmt.Fprintf(w, "app %s, workers of type %s: the policy for %s, in force %s\n", t.App, t.WorkerType,
		rateText(t.Rate), span)
	more := ""
	if t.Worst99 > 0 {
		more = fmt.Sprintf(" (median %s, 99 %% of the queries at least %s)", accuracyText(t.Median),
			accuracyText(t.Worst99))
	}
	fmt.Fprintf(w, "expected: accuracy %s%s, violations %s, workers busy %s\n\n", accuracyText(t.Accuracy), more,
		shareText(t.Violation), shareText(t.Busy))
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
			for to < len(r.Runs) && r.Runs[to].at == r.Runs[from].at {
				to++
			}
			cell := &row[1+r.Runs[from].at]
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
		legend = append(legend, v.Name+" "+accuracyText(v.Accuracy))
	}
	fmt.Fprintf(w,
		"\nCells: ms to the first deadline (objective %s ms) with which the variant runs; × takes so many queries, "+
			"otherwise all that wait.\nAccuracies: %s. A longer queue is treated like the longest with no time left.\n",
		number(t.SLOMS), strings.Join(legend, ", "))
	return nil
}

// runsText writes adjoining runs of one variant: from when to when, and how many it takes.
func runsText(runs []policyRun, queue int) string {
	last := &runs[len(runs)-1]
	text := fmt.Sprintf("%s-%s", number(runs[0].FromMS), number(last.ToMS))
	if last.last {
		text = number(runs[0].FromMS) + "+"
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

// plotPolicies draws a map of each policy into a folder.
func plotPolicies(dir string, tables []policyTable) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var files []string
	for i := range tables {
		t := &tables[i]
		h := plot.Heat{
			Title: fmt.Sprintf("Policy for %s, %s on workers of type %s", rateText(t.Rate), t.App, t.WorkerType),
			Subtitle: fmt.Sprintf("expected accuracy %s, violations %s, workers busy %s", accuracyText(t.Accuracy),
				shareText(t.Violation), shareText(t.Busy)),
			XName: "time left to the first deadline (ms)",
			YName: "queries waiting",
		}
		for _, v := range t.Variants {
			h.Kinds = append(h.Kinds, fmt.Sprintf("%s  %.1f %%", v.Name, 100*v.Accuracy))
		}
		p := t.policy
		for _, s := range p.Slacks {
			h.X = append(h.X, s.Seconds()*float64(time.Second/time.Millisecond))
		}
		for q := range t.Rows {
			var row []plot.HeatCell
			for j := range p.Slacks {
				c := p.Choices[q*len(p.Slacks)+j]
				cell := plot.HeatCell{Kind: t.order[c.Variant]}
				if int(c.Queries) != q+1 {
					cell.Pale, cell.Text, h.Pale = true, fmt.Sprint(c.Queries), "takes only so many"
				}
				row = append(row, cell)
			}
			h.Rows = append(h.Rows, row)
		}
		name := "policy-" + strings.Map(fileRune, fmt.Sprintf("%s-%s-%g", t.App, t.WorkerType, t.Rate))
		for ext, write := range map[string]func(io.Writer) error{".png": h.PNG, ".svg": h.SVG} {
			path := filepath.Join(dir, name+ext)
			if err := create(path, write); err != nil {
				return nil, err
			}
			files = append(files, path)
		}
	}
	slices.Sort(files)
	return files, nil
}

// fileRune keeps what is harmless in the name of a file.
func fileRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
		return r
	}
	return '_'
}
