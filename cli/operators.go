package cli

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sluice-serving/sluice/measure/profiler"
	"github.com/sluice-serving/sluice/measure/profiler/operators"
	"github.com/sluice-serving/sluice/runtime/onnx"
	"github.com/sluice-serving/sluice/serving"
)

// predicting is what `sluice profile --operators` is asked for.
type predicting struct {
	store    string // file of operator profiles
	out      string // profile file to write, or empty
	maxBatch int
	threads  []int // none takes the placement's
	compare  bool
	asJSON   bool
}

// defaultPredicted bounds the batches that are predicted when nobody says.
const defaultPredicted = 32

// predicted is one line of what is printed, in microseconds.
type predicted struct {
	Variant string `json:"variant"`
	operators.Prediction
	Safe     float64           `json:"with_offset_us"`
	Measured *operators.Timing `json:"measured,omitempty"`
	// Error is of the prediction without the offset, as a share of what was measured.
	Error *float64 `json:"error,omitempty"`
}

// forecast is what is printed as JSON.
type forecast struct {
	Host        profiler.Host `json:"host"`
	Offset      float64       `json:"offset"`
	Predictions []predicted   `json:"predictions"`
	MeanError   *float64      `json:"mean_error,omitempty"`
}

// defaultStore is the file of operator profiles when none is named: one for all models of a user.
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
			return nil, exit(ExitUsage, "--threads is %q, want numbers from 1 such as 1,2", text)
		}
		out = append(out, n)
	}
	return out, nil
}

// predict predicts the latencies of every variant that runs in this process.
func (w *world) predict(e *Env, ask predicting) error {
	rt, err := w.onnx()
	if err != nil {
		return err
	}
	f := forecast{Host: profiler.ThisHost(onnx.Version()), Offset: operators.Offset, Predictions: []predicted{}}
	store, err := operators.Open(ask.store, f.Host)
	if err != nil {
		return &status{ExitConfig, err}
	}
	out := &profiler.File{
		Version: profiler.Version, Created: time.Now().UTC().Truncate(time.Second), Host: f.Host,
		Points: []profiler.Point{}, Loads: []profiler.Load{},
	}
	bar := newProgress(e)
	defer bar.done()
	sites, left := w.sites()
	for _, x := range left {
		fmt.Fprintln(e.Stderr, x)
	}
	for _, s := range sites {
		if !w.runsHere(s.worker) {
			continue
		}
		for _, v := range s.variants {
			x, d := &w.Spec.Variants[v], s.device
			if w.Variants[v].Function != nil {
				fmt.Fprintf(e.Stderr, "%s is a function: it has no operators, measure it without --operators\n", x.Name)
				continue
			}
			threads := ask.threads
			switch {
			case w.Spec.DeviceTypes[d].Part:
				threads = []int{s.cores}
			case len(threads) == 0:
				threads = []int{w.cores(d)}
			}
			c := operators.Config{Runtime: rt, Store: store, Progress: func(done, total int, what string) {
				bar.show(float64(done)/float64(max(total, 1)), x.Name+": measuring "+what)
			}}
			got, err := operators.Predict(e.Context, c, w.Variants[v].Path,
				predictedBatches(ask.maxBatch, x.MaxBatch, w.Variants[v].Batched), threads)
			if err != nil {
				return fmt.Errorf("variant %q: %w", x.Name, err)
			}
			device := w.Spec.DeviceTypes[d].Name
			out.Loads = append(out.Loads, profiler.Load{
				Variant: x.Name, DeviceType: device, Load: got.Load.Seconds() * 1e3,
			})
			for i := range got.Predictions {
				p := predicted{Variant: x.Name, Prediction: got.Predictions[i], Safe: got.Predictions[i].Safe()}
				if p.Threads == threads[0] {
					out.Points = append(out.Points, p.Point(x.Name, device))
				}
				if f.has(&p) { // a part with as many threads as another
					continue
				}
				if ask.compare {
					bar.show(float64(i)/float64(len(got.Predictions)),
						fmt.Sprintf("%s: measuring the whole model, batch %d", x.Name, p.Batch))
					if err := p.check(e, rt, w.Variants[v].Path); err != nil {
						return fmt.Errorf("variant %q: %w", x.Name, err)
					}
				}
				f.Predictions = append(f.Predictions, p)
			}
		}
	}
	bar.done()
	if len(f.Predictions) == 0 {
		return exit(ExitConfig, "no variant runs on ONNX Runtime in this process: only those can be predicted")
	}
	f.mean()
	if ask.asJSON {
		err = writeJSON(e.Stdout, &f)
	} else {
		f.print(e, store)
	}
	if err == nil && ask.out != "" {
		if err = out.WriteFile(ask.out); err == nil && !ask.asJSON {
			fmt.Fprintf(e.Stdout,
				"\npredictions with the offset written to %s, for instances with %d threads and one batch at a time\n",
				ask.out, f.Predictions[0].Threads)
		}
	}
	return err
}

// cores are the threads that the placement gives an instance of a device type; where it leaves that to the runtime,
// all.
func (w *world) cores(d serving.DeviceTypeID) int {
	n := 0
	for _, i := range w.Placement {
		if w.Spec.Workers[i.Worker].DeviceType == d {
			n = max(n, i.Cores)
		}
	}
	if n == 0 {
		n = runtime.NumCPU()
	}
	return n
}

// predictedBatches are 1, 2, 4, ... and the bound itself.
func predictedBatches(asked, variant int, batched bool) []int {
	limit := max(1, variant)
	switch {
	case !batched:
		limit = 1
	case asked > 0:
		limit = min(limit, asked)
	default:
		limit = min(limit, defaultPredicted)
	}
	var out []int
	for n := 1; n < limit; n *= 2 {
		out = append(out, n)
	}
	return append(out, limit)
}

// check measures the whole model.
func (p *predicted) check(e *Env, rt operators.Runtime, model string) error {
	m, err := operators.Whole(e.Context, rt, model, p.Batch, p.Threads, operators.WholeEffort)
	if err != nil {
		return err
	}
	off := p.Sequential.Typical/m.Typical - 1
	p.Measured, p.Error = &m, &off
	return nil
}

// has tells whether the same has been predicted already.
func (f *forecast) has(p *predicted) bool {
	return slices.ContainsFunc(f.Predictions, func(x predicted) bool {
		return x.Variant == p.Variant && x.Batch == p.Batch && x.Threads == p.Threads
	})
}

func (f *forecast) mean() {
	sum, n := 0.0, 0.0
	for i := range f.Predictions {
		if x := f.Predictions[i].Error; x != nil {
			sum, n = sum+math.Abs(*x), n+1
		}
	}
	if n > 0 {
		sum /= n
		f.MeanError = &sum
	}
}

func (f *forecast) print(e *Env, store *operators.Store) {
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
	fmt.Fprintf(e.Stdout, "\n%d operators were measured for this; %d are known on this machine\n", fresh, store.Len())
}
