package measuring

import (
	"context"
	"fmt"
	"os"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
)

// Measuring are the options of [Measure].
type Measuring struct {
	// File is the profile file to write; empty writes none. An interrupted run leaves its measurements beside it, and
	// the next run continues from them.
	File string
	// Tune changes the settings for a device type before it is measured; nil takes the defaults.
	Tune func(*profiler.Config)
}

// Measure measures every variant on every device type that has a worker and on every part that can be measured. Parts
// that cannot be measured are reported to Options.Notice. It runs the models and takes seconds for every variant and
// batch size.
func Measure(ctx context.Context, o *host.Opened, how Measuring) (*profiler.File, error) {
	run, err := o.Fleet().Backends(nil)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	sites, left := o.Fleet().Sites()
	for _, x := range left {
		o.Options().Notice(x)
	}
	var files []*profiler.File
	for _, s := range sites {
		c, ended := o.Fleet().Measuring(ctx, run, s, how.File)
		if how.Tune != nil {
			how.Tune(&c)
		}
		f, err := profiler.Run(ctx, c, o.MeasuredSoFar("measuring"))
		ended(f)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
		if c.Partial != "" {
			defer os.Remove(c.Partial)
		}
	}
	f, err := profiler.Merge(files...)
	if err != nil {
		return nil, err
	}
	f.Whole = o.Single()
	if len(f.Points) == 0 && len(f.Failures) > 0 {
		return nil, f.Failed()
	}
	for _, x := range f.Failures {
		o.Notice("variant %q on %q fails with a batch of %d: %s", x.Variant, x.DeviceType, x.Batch, x.Reason)
	}
	f.EachQuery = run.CalledForEachQuery(ctx)
	o.Options().Progress(1, "measuring what serving costs beside the models")
	if f.Overheads, err = measureOverhead(ctx, o, f); err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		o.Options().Notice(fmt.Sprintf("what serving costs beside the models is not measured: %v", err))
	}
	if how.File != "" {
		if old, err := profiler.ReadFile(how.File); err == nil {
			f.Accuracies, f.Confidences = old.Accuracies, old.Confidences // they do not depend on the machine
		}
		err = f.WriteFile(how.File)
	}
	return f, err
}

// MeasuredHere reports whether a profile was measured on this machine, by models that ran in this process with the
// runtime that is here now.
func MeasuredHere(o *host.Opened, f *profiler.File) bool {
	run, err := o.Fleet().Backends(nil)
	return err == nil && run.Local != nil && f.Host == run.ThisHost()
}
