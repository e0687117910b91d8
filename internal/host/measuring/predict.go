package measuring

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/machines"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/internal/runtime/onnx"
	"github.com/sluice-serving/sluice/papers/infless/operators"
	"github.com/sluice-serving/sluice/serving"
)

// Predicting are the options of [Predict].
type Predicting struct {
	// Store is the file that keeps the operators' times of this machine. It is created if it does not exist.
	Store string
	// MaxBatch bounds the batches that are predicted, in items; 0 means DefaultPredicted. A variant's own bound
	// applies, too.
	MaxBatch int
	// Threads are the numbers of threads to predict for; nil means those of the placement. Parts have numbers of their
	// own.
	Threads []int
	// Compare measures the whole models, too.
	Compare bool
}

// DefaultPredicted is the default of Predicting.MaxBatch, in items.
const DefaultPredicted = 32

// Forecast is the outcome of Predict. Its JSON is that of 'sluice profile --operators --json'.
type Forecast struct {
	Host        profiler.Host `json:"host"`
	Offset      float64       `json:"offset"` // added to predictions to be safe, as a share of them
	Predictions []Predicted   `json:"predictions"`
	MeanError   *float64      `json:"mean_error,omitempty"` // mean magnitude over the compared predictions
	// Profile has the predictions with the offset, for the first number of threads and one batch at a time.
	Profile *profiler.File `json:"-"`
	// Known is the number of operators' times in the store afterwards.
	Known int `json:"-"`
}

// Predicted is the latency of one variant at one batch size on one number of threads. Times are in microseconds.
type Predicted struct {
	Variant string `json:"variant"`
	operators.Prediction
	Safe     float64           `json:"with_offset_us"`
	Measured *operators.Timing `json:"measured,omitempty"`
	// Error is that of the prediction without the offset, as a share of the measured latency.
	Error *float64 `json:"error,omitempty"`
}

// Predict predicts the latencies of every variant that runs in this process from the times of its operators. Operators
// that the store lacks are measured. Variants that cannot be predicted are reported to Options.Notice. An error is of
// kind fault.Config when the store is of another machine or nothing can be predicted, and of kind fault.Missing without
// ONNX Runtime.
func Predict(ctx context.Context, o *host.Opened, ask Predicting) (*Forecast, error) {
	rt, err := o.Fleet().ONNXBackend(ctx)
	if err != nil {
		return nil, err
	}
	here := profiler.ThisHost(onnx.Version())
	store, err := operators.Open(ask.Store, here)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err)
	}
	p := &predictor{opened: o, ask: ask, runtime: rt, store: store, out: &Forecast{
		Host: here, Offset: operators.Offset, Predictions: []Predicted{},
		Profile: &profiler.File{
			Version: profiler.Version, Created: time.Now().UTC().Truncate(time.Second), Host: here,
			Points: []profiler.Point{}, Loads: []profiler.Load{},
		},
	}}
	sites, left := o.Fleet().Sites()
	for _, x := range left {
		o.Options().Notice(x)
	}
	for _, s := range sites {
		if !o.Fleet().RunsHere(s.Worker) {
			continue
		}
		for _, v := range s.Variants {
			if err := p.variant(ctx, s, v); err != nil {
				return nil, fmt.Errorf("variant %q: %w", o.Spec().Variants[v].Name, err)
			}
		}
	}
	if len(p.out.Predictions) == 0 {
		return nil, fault.Errorf(fault.Config,
			"no variant runs on ONNX Runtime in this process: only those can be predicted")
	}
	p.out.mean()
	p.out.Known = store.Len()
	return p.out, nil
}

// predictor predicts one variant after the other.
type predictor struct {
	opened  *host.Opened
	ask     Predicting
	runtime operators.Runtime
	store   *operators.Store
	out     *Forecast
}

// variant predicts a variant at a site.
func (p *predictor) variant(ctx context.Context, s machines.Site, v serving.VariantID) error {
	o := p.opened
	x, device := &o.Spec().Variants[v], &o.Spec().DeviceTypes[s.Device]
	if o.Tables().Variants[v].Function != nil {
		o.Options().Notice(x.Name + " is a function: it has no operators, measure it without --operators")
		return nil
	}
	threads := p.ask.Threads
	switch {
	case device.Part:
		threads = []int{s.Cores}
	case len(threads) == 0:
		threads = []int{placedCores(o, s.Device)}
	}
	c := operators.Config{Runtime: p.runtime, Store: p.store, Progress: func(done, total int, what string) {
		o.Options().Progress(float64(done)/float64(max(total, 1)), x.Name+": measuring "+what)
	}}
	batches := predictedBatches(p.ask.MaxBatch, x.MaxBatch, o.Tables().Variants[v].Batched)
	got, err := operators.Predict(ctx, c, o.Tables().Variants[v].Path, batches, threads)
	if err != nil {
		return err
	}
	p.out.Profile.Loads = append(p.out.Profile.Loads, profiler.Load{
		Variant: x.Name, DeviceType: device.Name, Load: got.Load.Seconds() * 1e3,
	})
	for i := range got.Predictions {
		one := Predicted{Variant: x.Name, Prediction: got.Predictions[i], Safe: got.Predictions[i].Safe()}
		if one.Threads == threads[0] {
			p.out.Profile.Points = append(p.out.Profile.Points, one.Point(x.Name, device.Name))
		}
		if p.out.has(&one) { // a part with as many threads as another
			continue
		}
		if p.ask.Compare {
			o.Options().Progress(float64(i)/float64(len(got.Predictions)),
				fmt.Sprintf("%s: measuring the whole model, batch %d", x.Name, one.Batch))
			if err := one.compare(ctx, p.runtime, o.Tables().Variants[v].Path); err != nil {
				return err
			}
		}
		p.out.Predictions = append(p.out.Predictions, one)
	}
	return nil
}

// placedCores returns the threads that the placement gives an instance on a device type, or all if the placement leaves
// them to the runtime.
func placedCores(o *host.Opened, d serving.DeviceTypeID) int {
	n := 0
	for _, i := range o.Tables().Placement {
		if o.Spec().Workers[i.Worker].DeviceType == d {
			n = max(n, i.Cores)
		}
	}
	if n == 0 {
		n = runtime.NumCPU()
	}
	return n
}

// predictedBatches returns 1, 2, 4, ... and the bound itself.
func predictedBatches(asked, variant int, batched bool) []int {
	limit := max(1, variant)
	switch {
	case !batched:
		limit = 1
	case asked > 0:
		limit = min(limit, asked)
	default:
		limit = min(limit, DefaultPredicted)
	}
	var out []int
	for n := 1; n < limit; n *= 2 {
		out = append(out, n)
	}
	return append(out, limit)
}

// compare measures the whole model.
func (p *Predicted) compare(ctx context.Context, rt operators.Runtime, model string) error {
	m, err := operators.Whole(ctx, rt, model, p.Batch, p.Threads, operators.WholeEffort)
	if err != nil {
		return err
	}
	off := p.Sequential.Typical/m.Typical - 1
	p.Measured, p.Error = &m, &off
	return nil
}

// has reports whether the same has been predicted already.
func (f *Forecast) has(p *Predicted) bool {
	return slices.ContainsFunc(f.Predictions, func(x Predicted) bool {
		return x.Variant == p.Variant && x.Batch == p.Batch && x.Threads == p.Threads
	})
}

// mean computes MeanError.
func (f *Forecast) mean() {
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
