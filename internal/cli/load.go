package cli

import (
	"flag"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/files"
	"github.com/sluice-serving/sluice/internal/host/load"
	"github.com/sluice-serving/sluice/internal/measure/loadgen"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
)

func loadCommand() command {
	return command{
		name: "load", summary: "send an open-loop load to any server of the Open Inference Protocol",
		usage: "[-u grpc://HOST:PORT] [-f sluice.yaml | --app NAME --slo 50ms] --request-rate-range 100",
		about: `
Queries are sent when the schedule says, whatever became of the ones before; latency counts from the scheduled
instant. With labelled samples the accuracy of the answers is measured. With -f, objectives and accuracies come
from the configuration; without it --app names the model and --slo its objective.`,
		examples: "sluice load -f sluice.yaml --request-rate-range 100 --duration 1m\nsluice load -u " +
			"http://127.0.0.1:8000 --app digits --slo 100ms --rates 0:20,10:200,20:20 --samples samples --record " +
			"run.jsonl\nsluice load --app resnet --slo 80ms --request-rate-range 10:100:10 --request-distribution " +
			"gamma --shape 0.3 --json",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			target := fs.String("u", "grpc://127.0.0.1"+config.DefaultGRPC,
				"server, an `address` with grpc://, grpcs://, http:// or https://")
			file := fs.String("f", "", "configuration `file` that names the apps")
			slo := fs.Duration("slo", 0, "objective of --app without a configuration, a `duration`")
			percentile := fs.Float64("percentile", 99, "`percentile` of the objective, for --check")
			check := fs.Bool("check", false, "exit with status 5 when the latency at --percentile misses the objective")
			samples := fs.String("samples", "", "`folder` of labelled inputs; without it inputs are random")
			record := fs.String("record", "", "write every query to this `file`, for 'simulate --replay'")
			out := fs.String("out", "", "`folder` for reports and plots")
			connections := fs.Int("connections", 4, "`number` of connections")
			outstanding := fs.Int("max-outstanding", 4096,
				"`queries` under way at most; more are not sent and count as refused")
			warmup := fs.Duration("warmup", 0, "queries of this first `duration` are sent and not counted")
			timings := fs.Bool("stage-timings", false, "ask how long queries wait and run at every stage of their apps")
			outputs := listFlag(fs, "output",
				"`name` of an output to ask for; may be given several times; all without it")
			asJSON := fs.Bool("json", false, "print the results as JSON")
			flags := declareWorkload(fs)
			return func(e *Env, args []string) error {
				if len(args) > 0 {
					return fault.Errorf(fault.Usage, "%q is not understood", args)
				}
				run := loadRun{Loader: &load.Loader{}, record: *record, out: *out, asJSON: *asJSON, check: *check}
				var expected map[string]workload.ItemsSpec
				switch {
				case *file != "":
					opened, err := open(e, *file)
					if err != nil {
						return err
					}
					run.Loader, expected = load.For(opened), expectedItems(opened)
				case *flags.app == "" || *slo <= 0:
					return fault.Errorf(fault.Usage, "give -f FILE, or --app NAME and --slo DURATION")
				default:
					run.Apps = []loadgen.App{
						{Name: *flags.app, SLO: serving.SLO{Latency: *slo, Percentile: *percentile}},
					}
				}
				ctx := loadgen.WithToken(e.Context, e.Getenv("SLUICE_TOKEN"))
				o := &run.Options
				o.Name, o.Seed, o.MaxOutstanding = "live", *flags.seed, *outstanding
				o.Warmup, o.Outputs = *warmup, *outputs
				o.StageTimings = *timings || *record != "" // a replay says where the time went
				var err error
				if run.Client, err = loadgen.Dial(*target, *connections); err != nil {
					return fault.Errorf(fault.Usage, "-u: %v", err)
				}
				defer run.Client.Close()
				if err := run.Samples(ctx, *target, *samples, *flags.seed); err != nil {
					return err
				}
				specs, err := flags.specs(run.Names(), run.Counts(), expected)
				if err != nil {
					return err
				}
				return run.all(e, specs)
			}
		},
	}
}

// loadRun is the loads to send and the options for their results.
type loadRun struct {
	*load.Loader
	record, out   string // file and folder; empty for none
	asJSON, check bool
}

// all sends the loads of specs one after the other and prints the results.
func (l *loadRun) all(e *Env, specs []workload.Spec) error {
	var results []*loadgen.Result
	var reports []*report.Report
	var labels []string
	for i := range specs {
		r, err := l.Send(loadgen.WithToken(e.Context, e.Getenv("SLUICE_TOKEN")), &specs[i], func(p loadgen.Progress) {
			e.bar.show(float64(p.Sent)/float64(max(p.Total, 1)),
				fmt.Sprintf("%d sent, %d under way", p.Sent, p.Outstanding))
		})
		e.bar.clear()
		if err != nil {
			return err
		}
		label := "live"
		if len(specs) > 1 {
			label = fmt.Sprintf("%g-per-s", specs[i].Apps[0].Rate)
		}
		results, reports, labels = append(results, r), append(reports, r.Report), append(labels, label)
		if r.Interrupted {
			break
		}
	}
	if l.record != "" {
		if err := files.Write(l.record, results[len(results)-1].WriteRecords); err != nil {
			return err
		}
	}
	if err := printLoad(e, specs, labels, results, reports, l.asJSON); err != nil {
		return err
	}
	if l.out != "" {
		names, err := saveReports(l.out, "sluice load", labels, reports)
		if err != nil {
			return err
		}
		for _, f := range names {
			if !l.asJSON {
				fmt.Fprintf(e.Stdout, "written: %s\n", f)
			}
		}
	}
	if l.check {
		return l.objectives(results)
	}
	return nil
}

func printLoad(e *Env, specs []workload.Spec, labels []string, results []*loadgen.Result, reports []*report.Report,
	asJSON bool) error {
	if asJSON {
		return writeJSON(e.Stdout, results)
	}
	if len(results) > 1 {
		return report.SideBySide(e.Stdout, labels, reports)
	}
	fmt.Fprintf(e.Stdout, "%s\n\n", span(&specs[0]))
	if err := reports[0].Table(e.Stdout); err != nil {
		return err
	}
	return printUse(e.Stdout, results[0])
}

// printUse prints the share of each variant, the figures of each stage, and the generator's lag and errors.
func printUse(w io.Writer, r *loadgen.Result) error {
	t := tabwriter.NewWriter(w, 2, 8, 2, ' ', tabwriter.AlignRight)
	if len(r.Variants) > 0 {
		fmt.Fprintln(t, "\nvariant\tserved\taccuracy\t")
		for _, v := range r.Variants {
			fmt.Fprintf(t, "%s\t%d\t%.2f %%\t\n", v.Variant, v.Served, 100*v.Accuracy)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := printStageUse(w, r); err != nil {
		return err
	}
	printSending(w, r)
	return nil
}

// printStageUse prints batches, queueing and run times of every stage, if the server reports them.
func printStageUse(w io.Writer, r *loadgen.Result) error {
	if len(r.Stages) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 2, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\nstage\tqueries\titems\tbatch\tqueue p50\tp99\trun p50\tp99\t")
	for _, s := range r.Stages {
		fmt.Fprintf(t, "%s/%s\t%d\t%.2f\t%.2f\t%.2f ms\t%.2f ms\t%.2f ms\t%.2f ms\t\n", s.App, s.Stage, s.Served,
			s.Items, s.Batch, s.Queue.P50, s.Queue.P99, s.Run.P50, s.Run.P99)
	}
	return t.Flush()
}

// printSending prints how late the generator sent queries, and the errors that came back.
func printSending(w io.Writer, r *loadgen.Result) {
	fmt.Fprintf(w, "\nsend lag: p50 %.2f ms, p99 %.2f ms", r.SendLag.P50, r.SendLag.P99)
	if r.ClientRefused > 0 {
		fmt.Fprintf(w, "; %d queries were not sent: --max-outstanding were under way", r.ClientRefused)
	}
	fmt.Fprintln(w)
	for _, x := range r.Errors {
		fmt.Fprintf(w, "%6d %s: %s\n", x.Count, x.Outcome, x.Message)
	}
}

// objectives returns an error of kind fault.Short if some app misses its objective.
func (l *loadRun) objectives(results []*loadgen.Result) error {
	for _, r := range results {
		for a := range r.Report.Apps {
			s := &r.Report.Apps[a].Summary
			allowed := l.Apps[a].SLO.Allowed()
			if s.ViolationRatio > allowed {
				return fault.Errorf(fault.Short, "app %q: %.2f %% of the queries missed the objective, %.2f %% may",
					l.Apps[a].Name, 100*s.ViolationRatio, 100*allowed)
			}
		}
	}
	return nil
}
