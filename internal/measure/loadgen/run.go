package loadgen

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/report"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/tensor"
)

// App says how to call an app and how to check its answers.
type App struct {
	Name  string // in reports and records
	Model string // name of the model in requests; empty means Name
	SLO   serving.SLO
	// BestAccuracy is the accuracy of the most accurate variant, in [0, 1]; 0 when it is unknown.
	BestAccuracy float64
	// Accuracy has accuracies by name of variant, for servers that do not send them.
	Accuracy map[string]float64
	// Samples are the inputs to send. There must be at least one.
	Samples *Samples
	// Judge judges the outputs for a sample, where comparing with the samples' labels does not suffice; nil compares.
	// Several goroutines call it at the same time.
	Judge func(outputs []tensor.Tensor, sample int) Judgement
}

// Options configure a run. The zero value means the defaults.
type Options struct {
	Name     string
	Seed     uint64        // of the workload; only recorded
	Duration time.Duration // span of the workload; 0 means up to its last query
	// Timeout bounds every request, counted from its scheduled instant. Default 30 s. A query that reaches it counts as
	// dropped.
	Timeout time.Duration
	// MaxOutstanding is the most queries under way at the same time. Further ones are not sent and count as refused.
	// Default 4096.
	MaxOutstanding int
	Bucket         time.Duration // width of the report's time series; default 1 s
	Warmup         time.Duration // queries scheduled before it are sent but not reported
	// Version returns the model version that requests for a pinned variant name; nil ignores pins.
	Version func(serving.VariantID) string
	// Outputs are the names of the outputs to ask for; nil for all.
	Outputs []string
	// StageTimings asks the server for Result.Stages.
	StageTimings bool
	// Progress is called about twice a second during the run, always by one goroutine. It may be nil.
	Progress func(Progress)

	// Clients are the clients of sessions. The first query of each of their streams declares the client's rate.
	Clients []workload.Client

	pacer *pacer // for tests
}

// MaxQueries bounds a run, whose schedule and results lie in memory with some 150 bytes for each query.
const MaxQueries = 20_000_000

// Progress is the state of a run. Outstanding queries are sent and have not ended.
type Progress struct {
	Elapsed     time.Duration
	Total       int // queries in the schedule
	Sent        int
	Done        int
	Outstanding int
}

// query is the result of one arrival. It has the same index.
type query struct {
	lag      time.Duration // from the scheduled instant to the sending
	latency  time.Duration // from the scheduled instant to the end
	queue    time.Duration
	inside   time.Duration // 0 when not known
	accuracy float64
	batch    int32
	variant  int32 // id in runner.variants, or serving.None
	message  int32 // id in runner.messages, or serving.None
	outcome  serving.Outcome
	label    int8
	certain  bool // accuracy is that of answers of the same confidence
	// of the items whose right answer is known
	rightItems, judgedItems int32
	stages, lengths         map[string]int32
}

type runner struct {
	ctx         context.Context
	target      Target
	apps        []App
	opt         Options
	start       time.Time
	arrivals    []workload.Arrival
	queries     []query
	outstanding atomic.Int64
	sent        atomic.Int64
	done        atomic.Int64
	refused     int64 // because MaxOutstanding were under way

	variants textIDs
	messages textIDs
	stages   stageUses
	// indices of the first and the last query of every stream
	first, last map[streamKey]int
	rates       map[streamKey]float64 // declared by clients, in queries/s
}

type streamKey struct {
	app    serving.AppID
	number uint64
}

// Run sends all queries of src to target and waits for the answers. apps are by AppID; the slice is not kept. When ctx
// ends, Run stops sending, cancels the queries under way and reports what it has sent. It returns an error when the
// workload is empty or too long, an app has no samples, or its inputs cannot have a query's length. A server that fails
// every query is no error: the report says so.
func Run(ctx context.Context, target Target, apps []App, src workload.Source, opt Options) (*Result, error) {
	if opt.Timeout <= 0 {
		opt.Timeout = 30 * time.Second
	}
	if opt.MaxOutstanding <= 0 {
		opt.MaxOutstanding = 4096
	}
	for i := range apps {
		if apps[i].Samples == nil || apps[i].Samples.Count < 1 {
			return nil, fmt.Errorf("app %q has no inputs to send; give it samples", apps[i].Name)
		}
		if apps[i].Model == "" {
			// The caller's slice must not change.
			apps = append([]App(nil), apps...)
			apps[i].Model = apps[i].Name
		}
	}
	arrivals := workload.Collect(src, MaxQueries+1)
	switch {
	case len(arrivals) > MaxQueries:
		return nil, fmt.Errorf("the workload has more than %d queries; shorten it", MaxQueries)
	case len(arrivals) == 0:
		return nil, errors.New("the workload has no queries")
	}
	for i := range arrivals {
		if a := arrivals[i].App; a < 0 || int(a) >= len(apps) {
			return nil, fmt.Errorf("query %d is for app %d, there are %d", i+1, a, len(apps))
		}
		if x := &arrivals[i]; x.Length > 0 {
			if err := apps[x.App].Samples.checkLength(int(x.Items), x.Length); err != nil {
				return nil, fmt.Errorf("app %q, a query of %d items of length %d: %w", apps[x.App].Name, x.Items,
					x.Length, err)
			}
		}
	}
	r := &runner{
		ctx: ctx, target: target, apps: apps, opt: opt, arrivals: arrivals, queries: make([]query, len(arrivals)),
		rates: make(map[streamKey]float64),
	}
	for _, s := range opt.Clients {
		r.rates[streamKey{s.App, s.Stream}] = s.Rate
	}
	for i, a := range arrivals {
		if a.Stream == 0 {
			continue
		}
		if r.last == nil {
			r.first, r.last = make(map[streamKey]int), make(map[streamKey]int)
		}
		s := streamKey{a.App, a.Stream}
		if _, known := r.last[s]; !known {
			r.first[s] = i
		}
		r.last[s] = i
	}
	p := opt.pacer
	if p == nil {
		p = newPacer()
		defer p.close()
	}
	stopProgress := r.report()
	offered := r.send(p)
	stopProgress()
	return r.result(offered, time.Since(r.start)), nil
}

// startDelay is the time from the start of a run to its instant zero. It lets the sender wait for the first query.
const startDelay = 20 * time.Millisecond

// send follows the schedule. It returns the number of queries offered, when all of them have ended.
func (r *runner) send(p *pacer) int {
	var wg sync.WaitGroup
	jobs := make(chan int)
	workers := 0
	r.start = time.Now().Add(startDelay)
	offered := 0
	for i := range r.arrivals {
		due := r.start.Add(time.Duration(r.arrivals[i].At))
		if p.wait(r.ctx, due) != nil {
			break
		}
		offered++
		if r.outstanding.Load() >= int64(r.opt.MaxOutstanding) {
			r.refused++
			late := time.Since(due)
			r.queries[i] = query{
				lag: late, latency: late, outcome: serving.Refused, label: report.LabelUnknown, variant: serving.None,
				message: r.messages.id(notSentText),
			}
			r.done.Add(1)
			continue
		}
		r.outstanding.Add(1)
		r.sent.Add(1)
		select {
		case jobs <- i:
			continue
		default:
		}
		if workers < r.opt.MaxOutstanding {
			workers++
			wg.Add(1)
			go func(i int) {
				defer wg.Done()
				r.sendOne(i)
				for i := range jobs {
					r.sendOne(i)
				}
			}(i)
			continue
		}
		jobs <- i // a goroutine has just finished its query and will receive
	}
	close(jobs)
	wg.Wait()
	return offered
}

const notSentText = "not sent: max_outstanding queries were under way"

// sendOne sends query i and records its result.
func (r *runner) sendOne(i int) {
	a := &r.arrivals[i]
	app := &r.apps[a.App]
	due := r.start.Add(time.Duration(a.At))
	req := Request{
		Model: app.Model, Timeout: a.Timeout, Priority: a.Priority, MinAccuracy: a.MinAccuracy,
		StageTimings: r.opt.StageTimings, Outputs: r.opt.Outputs,
	}
	if a.Stream != 0 {
		s := streamKey{a.App, a.Stream}
		req.Sequence, req.First, req.Last = strconv.FormatUint(a.Stream, 10), r.first[s] == i, r.last[s] == i
		if req.First {
			req.Rate = r.rates[s]
		}
	}
	if a.Variant != serving.None && r.opt.Version != nil {
		req.Version = r.opt.Version(a.Variant)
	}
	first := r.sample(i)
	req.Inputs = app.Samples.tensorsOf(first, int(a.Items), a.Length)
	ctx, cancel := context.WithDeadline(r.ctx, due.Add(r.opt.Timeout))
	q := query{label: report.LabelUnknown, variant: serving.None, message: serving.None}
	q.lag = time.Since(due)
	answer, err := r.target.Infer(ctx, &req)
	q.latency = time.Since(due)
	own := ctx.Err() // before cancel sets it
	cancel()
	if err == nil {
		q.outcome = serving.Served
		q.queue, q.batch, q.accuracy, q.certain = answer.Queue, answer.Batch, answer.Accuracy, answer.Calibrated
		q.stages, q.lengths = byStage(answer.Stages)
		q.inside = min(inside(answer.Stages), q.latency)
		if len(answer.Stages) > 0 && a.At >= serving.Time(r.opt.Warmup) {
			r.stages.add(a.App, answer.Stages)
		}
		if answer.Variant != "" {
			q.variant = r.variants.id(answer.Variant)
			if q.accuracy == 0 {
				q.accuracy = app.Accuracy[answer.Variant]
			}
		}
		if !(q.accuracy >= 0 && q.accuracy <= 1) {
			q.accuracy = 0 // a server may send anything
		}
		var j Judgement
		if app.Judge != nil {
			j = app.Judge(answer.Outputs, first%app.Samples.Count)
		} else {
			j = app.Samples.Right(answer.Outputs, first, int(a.Items))
		}
		if j.Items > 0 {
			q.rightItems, q.judgedItems, q.label = int32(j.Right), int32(j.Items), report.LabelWrong
			if j.Whole {
				q.label = report.LabelRight
			}
		}
	} else {
		q.outcome = outcomeOf(r.ctx.Err(), own, err)
		q.message = r.messages.id(err.Error())
	}
	r.queries[i] = q
	r.outstanding.Add(-1)
	r.done.Add(1)
}

// sample returns the first input of query i: the workload's choice, or i.
func (r *runner) sample(i int) int {
	if s := r.arrivals[i].Sample; s >= 0 {
		return int(s)
	}
	return i
}

func outcomeOf(run, own, err error) serving.Outcome {
	if run != nil {
		return serving.Cancelled
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Outcome
	}
	if own != nil {
		return serving.Dropped
	}
	return serving.Failed
}

// report starts the calls of Progress. stop makes the last one.
func (r *runner) report() (stop func()) {
	if r.opt.Progress == nil {
		return func() {}
	}
	began := time.Now()
	show := func() {
		sent := int(r.sent.Load())
		r.opt.Progress(Progress{
			Elapsed: time.Since(began), Total: len(r.arrivals), Sent: sent, Done: int(r.done.Load()),
			Outstanding: int(r.outstanding.Load()),
		})
	}
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				show()
			case <-quit:
				show()
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}
