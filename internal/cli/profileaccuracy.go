package cli

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"text/tabwriter"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/measuring"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/measure/quantity"
)

// judging are the flags that have 'profile' measure accuracy.
type judging struct {
	measuring.Judging
	agree string // folder
}

func (j *judging) flags(fs *flag.FlagSet) {
	fs.StringVar(&j.Samples, "samples", "",
		"`folder` of labelled samples, LABEL/FILE or labels.csv: measure how accurate every variant is")
	fs.StringVar(&j.Score, "score", "", "with --samples: `command` that scores answers, in place of labels")
	fs.StringVar(&j.agree, "agree", "",
		"`folder` of inputs without labels: measure how often variants agree with the most accurate one")
	fs.StringVar(&j.Reference, "reference", "", "with --agree: the most accurate `variant`; empty takes it from -f")
	fs.StringVar(&j.App, "app", "", "with --samples or --agree: `app` that the samples are for")
	fs.StringVar(&j.Stage, "stage", "", "with --samples or --agree: `stage` of the app that the samples are for")
	fs.IntVar(&j.Most, "most", measuring.DefaultSamples, "with --samples or --agree: `number` of samples at most")
}

// asked reports whether accuracy is to be measured.
func (j *judging) asked() (bool, error) {
	switch {
	case j.Samples != "" && j.agree != "":
		return false, fault.Errorf(fault.Usage, "give --samples or --agree")
	case j.agree != "":
		j.Samples, j.Agree = j.agree, true
	case j.Samples == "" && j.Score != "":
		return false, fault.Errorf(fault.Usage, "--score needs --samples")
	}
	if j.Agree && j.Score != "" {
		return false, fault.Errorf(fault.Usage, "--score is for --samples")
	}
	return j.Samples != "", nil
}

// run measures accuracies and writes them beside the latencies of a profile file, which latencies measures where there
// is none.
func (j *judging) run(e *Env, o *host.Opened, out string, latencies func() (*profiler.File, error)) (*profiler.File,
	error) {
	got, err := measuring.MeasureAccuracy(e.Context, o, j.Judging)
	if err != nil {
		return nil, err
	}
	f, err := profiler.ReadFile(out)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = latencies()
	}
	if err != nil {
		return nil, err
	}
	for _, a := range got.Accuracies {
		f.SetAccuracy(a)
	}
	for _, c := range got.Confidences {
		f.SetConfidence(c)
	}
	return f, f.WriteFile(out)
}

func printAccuracies(e *Env, f *profiler.File) {
	if len(f.Accuracies) == 0 {
		return
	}
	fmt.Fprintln(e.Stdout, "\nHow accurate they are:")
	t := tabwriter.NewWriter(e.Stdout, 2, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "variant\taccuracy\t+/-\tsamples\tby\t")
	for _, a := range f.Accuracies {
		by := a.How
		if a.Reference != "" {
			by += " with " + a.Reference
		}
		// 95 % of a normal approximation; scores vary at most as much.
		fmt.Fprintf(t, "%s\t%.4f\t%.4f\t%d\t%s\t\n", a.Variant, a.Value,
			1.96*math.Sqrt(a.Value*(1-a.Value)/float64(a.Samples)), a.Samples, by)
	}
	_ = t.Flush()
}

// printTradeoffs says what the accuracy of each variant costs in machine time, with second answers and without, and if
// it were known beforehand which queries need the better variant.
func printTradeoffs(e *Env, f *profiler.File) {
	if len(f.Confidences) == 0 {
		return
	}
	for _, d := range profiledDevices(f) {
		alone, with := f.Tradeoffs(d, profiler.Once), f.Tradeoffs(d, profiler.Twice)
		foretold := f.Tradeoffs(d, profiler.Foretold)
		if len(alone) == 0 {
			continue
		}
		fmt.Fprintf(e.Stdout, "\nMachine time for an accuracy, with one answer and where unsure ones may be answered "+
			"again, on %s:\n", d)
		t := tabwriter.NewWriter(e.Stdout, 2, 8, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "accuracy\tone answer\tms\tsecond answers\tms\ttimes\tforetold ms\t")
		for k := range alone {
			x := &alone[k]
			least, y := profiler.TimeFor(with, x.Accuracy)
			by := y.First
			if y.Second != "" {
				by = fmt.Sprintf("%s, then %s for %s", y.First, y.Second, quantity.Percent(y.Share))
			}
			limit, _ := profiler.TimeFor(foretold, x.Accuracy)
			fmt.Fprintf(t, "%.4f\t%s\t%.3f\t%s\t%.3f\t%.2f\t%.3f\t\n", x.Accuracy, x.First, x.Time, by, least,
				x.Time/least, limit)
		}
		_ = t.Flush()
	}
}
