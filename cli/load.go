package cli

import (
	"context"
	"flag"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/sluice-serving/sluice/measure/loadgen"
	"github.com/sluice-serving/sluice/measure/report"
	"github.com/sluice-serving/sluice/measure/workload"
	"github.com/sluice-serving/sluice/serving"
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
			target := fs.String("u", "grpc://127.0.0.1:8001",
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
			asJSON := fs.Bool("json", false, "print the results as JSON")
			load := declareWorkload(fs)
			return func(e *Env, args []string) error {
				if len(args) > 0 {
					return exit(ExitUsage, "%q is not understood", args)
				}
				run := loader{target: *target, connections: *connections, samples: *samples, seed: *load.seed,
					options: loadgen.Options{
						Name: "live", Seed: *load.seed, MaxOutstanding: *outstanding, Warmup: *warmup,
						StageTimings: *timings,
					}}
				if err := run.apps(e, *file, *load.app, serving.SLO{Latency: *slo, Percentile: *percentile}); err !=
					nil {
					return err
				}
				if err := run.dial(e.Context); err != nil {
					return err
				}
				defer run.client.Close()
				specs, err := load.specs(run.names(), run.counts(), run.sizes())
				if err != nil {
					return err
				}
				return run.all(e, specs, *record, *out, *asJSON, *check)
			}
		},
	}
}

// loader sends loads to a server.
type loader struct {
	target      string
	connections int
	samples     string
	seed        uint64
	options     loadgen.Options
	client      loadgen.Target
	list        []loadgen.App
	world       *world                  // nil without a configuration
	choose      func(*workload.Arrival) // which sample a query brings; nil takes the workload's
}

// apps finds out what is to be called.
func (l *loader) apps(e *Env, file, app string, slo serving.SLO) error {
	if file != "" {
		w, err := openWorld(e, file)
		if err != nil {
			return err
		}
		l.world = w
		for a, i := range w.appInfos() {
			accuracy := make(map[string]float64)
			for v, b := range w.Variants {
				if b.App == serving.AppID(a) {
					accuracy[w.Spec.Variants[v].Name] = w.Spec.Variants[v].Accuracy
				}
			}
			l.list = append(l.list, loadgen.App{
				Name: i.Name, SLO: i.SLO, BestAccuracy: i.BestAccuracy, Accuracy: accuracy,
			})
		}
		return nil
	}
	if app == "" || slo.Latency <= 0 {
		return exit(ExitUsage, "give -f FILE, or --app NAME and --slo DURATION")
	}
	l.list = []loadgen.App{{Name: app, SLO: slo}}
	return nil
}

// dial connects and gets inputs for every app: labelled samples, or random ones of the shapes that the server names.
func (l *loader) dial(ctx context.Context) error {
	client, err := loadgen.Dial(l.target, l.connections)
	if err != nil {
		return exit(ExitUsage, "-u: %v", err)
	}
	l.client = client
	for a := range l.list {
		if l.samples != "" {
			l.list[a].Samples, err = loadgen.LoadSamples(l.samples)
			if err != nil {
				return &status{ExitConfig, err}
			}
			continue
		}
		asked, done := context.WithTimeout(ctx, 10*time.Second)
		specs, err := client.Inputs(asked, l.list[a].Name)
		done()
		if err != nil {
			return exit(ExitNoServer, "%s does not say what %q takes: %v", l.target, l.list[a].Name, err)
		}
		if l.list[a].Samples, err = loadgen.Synthetic(specs, 64, l.seed); err != nil {
			return exit(ExitFailed, "%q: %v", l.list[a].Name, err)
		}
	}
	return nil
}

func (l *loader) names() []string {
	out := make([]string, len(l.list))
	for a := range out {
		out[a] = l.list[a].Name
	}
	return out
}

func (l *loader) counts() map[string]int32 {
	out := make(map[string]int32)
	for _, a := range l.list {
		out[a.Name] = int32(a.Samples.Count)
	}
	return out
}

// sizes are those that the configuration says to expect.
func (l *loader) sizes() map[string]workload.ItemsSpec {
	if l.world == nil {
		return nil
	}
	return l.world.sizes()
}

func (l *loader) resolve(name string) (serving.AppID, error) {
	for a := range l.list {
		if l.list[a].Name == name {
			return serving.AppID(a), nil
		}
	}
	return serving.None, fmt.Errorf("app %q is unknown", name)
}

// send runs one load.
func (l *loader) send(e *Env, spec *workload.Spec) (*loadgen.Result, error) {
	src, err := spec.Source(l.resolve)
	if err != nil {
		return nil, &status{ExitConfig, err}
	}
	if l.choose != nil {
		src = chosen{src, l.choose}
	}
	o := l.options
	o.Duration = spec.Duration()
	if o.Clients, err = spec.Clients(l.resolve); err != nil {
		return nil, &status{ExitConfig, err}
	}
	if w := l.world; w != nil {
		o.Version = func(v serving.VariantID) string { return w.Spec.Variants[v].Name }
	}
	bar := newProgress(e)
	defer bar.done()
	o.Progress = func(p loadgen.Progress) {
		bar.show(float64(p.Sent)/float64(max(p.Total, 1)), fmt.Sprintf("%d sent, %d under way", p.Sent, p.Outstanding))
	}
	return loadgen.Run(e.Context, l.client, l.list, src, o)
}

// chosen is a workload whose queries' samples are chosen by what is known of them.
type chosen struct {
	workload.Source
	choose func(*workload.Arrival)
}

// Next implements workload.Source.
func (c chosen) Next() (workload.Arrival, bool) {
	a, ok := c.Source.Next()
	if ok {
		c.choose(&a)
	}
	return a, ok
}

func (l *loader) all(e *Env, specs []workload.Spec, record, out string, asJSON, check bool) error {
	var results []*loadgen.Result
	var reports []*report.Report
	var labels []string
	for i := range specs {
		r, err := l.send(e, &specs[i])
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
	if record != "" {
		if err := create(record, results[len(results)-1].WriteRecords); err != nil {
			return err
		}
	}
	if err := printLoad(e, specs, labels, results, reports, asJSON); err != nil {
		return err
	}
	if out != "" {
		files, err := saveReports(out, "sluice load", labels, reports)
		if err != nil {
			return err
		}
		for _, f := range files {
			if !asJSON {
				fmt.Fprintf(e.Stdout, "written: %s\n", f)
			}
		}
	}
	if check {
		return l.check(results)
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

// printUse shows which variants answered, how far behind its schedule the generator was, and the errors.
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

// printStageUse shows what became of queries at every stage, where the server told.
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

// printSending shows how well the generator kept its schedule, and the errors it met.
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

// check compares every app's share of queries in time with its objective.
func (l *loader) check(results []*loadgen.Result) error {
	for _, r := range results {
		for a := range r.Report.Apps {
			s := &r.Report.Apps[a].Summary
			allowed := 1 - l.list[a].SLO.Percentile/100
			if s.ViolationRatio > allowed {
				return exit(ExitShortOf, "app %q: %.2f %% of the queries missed the objective, %.2f %% may",
					l.list[a].Name, 100*s.ViolationRatio, 100*allowed)
			}
		}
	}
	return nil
}
