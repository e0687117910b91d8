package cli

import (
	"flag"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/measuring"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
)

const profileAbout = `
Measures the latency of every variant at every batch size and concurrency that the file's placement can use, and
the time to load each, and writes a profile file that 'serve' and 'simulate' read. With several batches at once
it also says up to how many they pay: beyond that they only hold each other up. A point is measured until its
mean and its 95th percentile are known well enough: as in service, after runs of other models and after pauses.
What serving costs beside the models is measured at the end. An interrupted run is taken up where it stopped.

With --samples the accuracy of every variant of a stage is measured on labelled samples (pictures, .npy, .json), in
LABEL/FILE or listed in labels.csv, and written beside the latencies of -o; these are measured, too, where -o does
not exist. A class is right (top-1), or --score names a command: it gets an answer as JSON on each line and writes
a number from 0 to 1 for it. With --agree inputs without labels do: answers are compared with those of the most
accurate variant.

With --operators no model is run as a whole: the operators of its graph are looked up in a file, those that are
not in it are measured alone, and the latency is predicted from them. --compare measures the whole models too. A
profile file is then written only when -o names one.`

func profileCommand() command {
	return command{
		name: "profile", summary: "measure how long every variant takes on this machine",
		usage: "-f sluice.yaml [-o profile.json] [--operators]",
		about: profileAbout,
		examples: "sluice profile -f sluice.yaml -o profile.json\nsluice profile -f sluice.yaml --concurrency " +
			"4\nsluice profile -f sluice.yaml --max-batch 16 --precision 0.02\n" +
			"sluice profile -f sluice.yaml --samples pictures/\nsluice profile --charts plots -o profile.json\n" +
			"sluice profile --operators -f sluice.yaml --threads 1,2 --compare",
		prepare: func(fs *flag.FlagSet) func(*Env, []string) error {
			file := fs.String("f", "sluice.yaml", "configuration `file`")
			out := fs.String("o", "profile.json", "profile `file` to write")
			maxBatch := fs.Int("max-batch", 0, "largest batch to measure, in `items`; 0 takes each variant's own bound")
			slots := fs.Int("concurrency", 0, "highest `number` of batches at once; 0 takes the placement's slots")
			precision := fs.Float64("precision", 0.05,
				"half width of the mean's 95 % confidence interval as a `share` of it")
			perPoint := fs.Duration("max-time", 3*time.Second, "longest measurement of one point, a `duration`")
			seed := fs.Uint64("seed", 1, "`seed` of random inputs and of the order of measurement")
			asJSON := fs.Bool("json", false, "print the profile as JSON instead of a table")
			charts := fs.String("charts", "",
				"draw the profile file of -o into this `folder` instead of measuring: throughput over latency")
			byOperators := fs.Bool("operators", false,
				"predict from the times of operators instead of measuring whole models")
			var judge judging
			judge.flags(fs)
			var ask measuring.Predicting
			fs.BoolVar(&ask.Compare, "compare", false,
				"with --operators: measure the whole models too, and print the error")
			fs.StringVar(&ask.Store, "store", defaultStore(),
				"with --operators: `file` that keeps the operators' times, of this machine only")
			threads := fs.String("threads", "",
				"with --operators: `numbers` of threads, such as 1,2; empty takes the placement's")
			return func(e *Env, args []string) error {
				if len(args) > 0 || !(*precision > 0) {
					return fault.Errorf(fault.Usage, "no arguments are taken, and --precision must be positive")
				}
				if *charts != "" {
					return drawProfile(e, *out, *charts)
				}
				opened, err := open(e, *file)
				if err != nil {
					return err
				}
				if *byOperators {
					if ask.Threads, err = parseThreads(*threads); err != nil {
						return err
					}
					ask.MaxBatch = *maxBatch
					wanted := ""
					fs.Visit(func(x *flag.Flag) {
						if x.Name == "o" {
							wanted = *out
						}
					})
					return predict(e, opened, ask, wanted, *asJSON)
				}
				f, err := measureProfile(e, opened, *out, &judge, func(c *profiler.Config) {
					c.MaxBatch, c.MeanWidth, c.P95Width, c.MaxTime, c.Seed = *maxBatch, *precision, 2**precision,
						*perPoint, *seed
					if *slots > 0 {
						c.Slots = *slots
					}
				})
				if err != nil {
					return err
				}
				e.bar.clear()
				if *asJSON {
					return f.Encode(e.Stdout)
				}
				printProfile(e, f)
				fmt.Fprintf(e.Stdout, "\nwritten to %s; list it under profiles in %s\n", *out, *file)
				return nil
			}
		},
	}
}

// measureProfile measures latencies, or accuracies where the flags ask for them.
func measureProfile(e *Env, o *host.Opened, out string, judge *judging, tune func(*profiler.Config)) (*profiler.File,
	error) {
	accuracy, err := judge.asked()
	if err != nil {
		return nil, err
	}
	latencies := func() (*profiler.File, error) {
		return measuring.Measure(e.Context, o, measuring.Measuring{File: out, Tune: tune})
	}
	if accuracy {
		return judge.run(e, o, out, latencies)
	}
	return latencies()
}

func printProfile(e *Env, f *profiler.File) {
	t := tabwriter.NewWriter(e.Stdout, 2, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "variant\tdevice\tbatch\tat once\tsamples\tmean ms\tstddev\tp50\tp90\tp95\tp99\titems/s\t")
	for _, p := range f.Points {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.0f\t\n", p.Variant, p.DeviceType,
			p.Batch, p.Concurrency, p.Samples,
			p.Mean/1e3, p.StdDev/1e3, p.P50/1e3, p.P90/1e3, p.P95/1e3, p.P99/1e3,
			float64(p.Batch*p.Concurrency)/p.Mean*1e6)
	}
	_ = t.Flush()
	for _, o := range f.Overheads {
		fmt.Fprintf(e.Stdout, "\nServing on %s costs, beside the models: %.3f ms around every batch, %.3f ms around "+
			"every query (medians, %d queries)\n", o.DeviceType, o.Batch/1e3, o.Query/1e3, o.Queries)
	}
	printLengths(e, f)
	printMemory(e, f)
	printAccuracies(e, f)
	printTradeoffs(e, f)
	paying := f.Saturations()
	if len(paying) == 0 {
		return
	}
	fmt.Fprintln(e.Stdout, "\nHow many batches at once pay:")
	t = tabwriter.NewWriter(e.Stdout, 2, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "variant\tdevice\tbatch\tat once\tof\titems/s\tover one\tmean ms\t")
	for _, p := range paying {
		over := "-"
		if p.SingleThroughput > 0 {
			over = fmt.Sprintf("%.2fx", p.Throughput/p.SingleThroughput)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%.0f\t%s\t%.3f\t\n", p.Variant, p.DeviceType, p.Batch, p.Concurrency,
			p.MaxConcurrency,
			p.Throughput, over, p.BatchMicros/1e3)
	}
	_ = t.Flush()
}
