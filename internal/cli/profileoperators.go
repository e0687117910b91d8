package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/measuring"
)

// defaultStore returns the default file of operators' times. All models of a user share it.
func defaultStore() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "operators.json"
	}
	return filepath.Join(dir, "sluice", "operators.json")
}

// parseThreads reads a list such as 1,2.
func parseThreads(text string) ([]int, error) {
	var out []int
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > 1024 {
			return nil, fault.Errorf(fault.Usage, "--threads is %q, want numbers from 1 such as 1,2", text)
		}
		out = append(out, n)
	}
	return out, nil
}

// predict prints the latencies predicted from the times of operators. It writes them to the profile file wanted, unless
// that is empty.
func predict(e *Env, o *host.Opened, ask measuring.Predicting, wanted string, asJSON bool) error {
	f, err := measuring.Predict(e.Context, o, ask)
	if err != nil {
		return err
	}
	e.bar.clear()
	if asJSON {
		err = writeJSON(e.Stdout, f)
	} else {
		printForecast(e, f)
	}
	if err != nil || wanted == "" {
		return err
	}
	if err = f.Profile.WriteFile(wanted); err == nil && !asJSON {
		fmt.Fprintf(e.Stdout,
			"\npredictions with the offset written to %s, for instances with %d threads and one batch at a time\n",
			wanted, f.Predictions[0].Threads)
	}
	return err
}

func printForecast(e *Env, f *measuring.Forecast) {
	t := tabwriter.NewWriter(e.Stdout, 2, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "variant\tbatch\tthreads\toperators\tnew\tpredicted ms\twith offset\tbranches at once\t")
	if f.MeanError != nil {
		fmt.Fprint(t, "measured ms\terror\t")
	}
	fmt.Fprintln(t)
	fresh := 0
	for i := range f.Predictions {
		p := &f.Predictions[i]
		fresh += p.New
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%.3f\t%.3f\t%.3f\t", p.Variant, p.Batch, p.Threads, p.Operators, p.New,
			p.Sequential.Typical/1e3, p.Safe/1e3, p.Parallel.Typical/1e3)
		if p.Measured != nil {
			fmt.Fprintf(t, "%.3f\t%+.1f %%\t", p.Measured.Typical/1e3, 100**p.Error)
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush()
	if f.MeanError != nil {
		fmt.Fprintf(e.Stdout, "\nmean error without its sign: %.1f %%\n", 100**f.MeanError)
	}
	fmt.Fprintf(e.Stdout, "\n%d operators were measured for this; %d are known on this machine\n", fresh, f.Known)
}
