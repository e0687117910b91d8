package loadgen

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/workload"
	"github.com/sluice-serving/sluice/tensor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a Target within the process.
type fake struct {
	mu    sync.Mutex
	seen  []Request
	infer func(ctx context.Context, n int, r *Request) (*Answer, error)
}

func (f *fake) Infer(ctx context.Context, r *Request) (*Answer, error) {
	f.mu.Lock()
	n := len(f.seen)
	f.seen = append(f.seen, *r)
	f.mu.Unlock()
	return f.infer(ctx, n, r)
}
func (f *fake) Inputs(context.Context, string) ([]tensor.Spec, error) { return nil, nil }
func (f *fake) Close() error                                          { return nil }

// numbers are samples 0 to n-1. Each is its own input and label.
func numbers(n int) *Samples {
	s := &Samples{Count: n, output: "label"}
	c := column{name: "x", dtype: tensor.Int64, row: 8}
	for i := range n {
		c.data = binary.LittleEndian.AppendUint64(c.data, uint64(i))
		s.labels = append(s.labels, int64(i))
	}
	s.inputs = []column{c}
	return s
}

func echo(r *Request) *Answer {
	return &Answer{
		Variant: "v1", Accuracy: 0.9, Queue: time.Millisecond, Batch: 2, Outputs: []tensor.Tensor{
			{Name: "label", DType: tensor.Int64, Shape: r.Inputs[0].Shape, Data: r.Inputs[0].Data},
		},
	}
}

func even(n int, gap time.Duration) workload.Source {
	var a []workload.Arrival
	for i := range n {
		a = append(a, workload.Arrival{
			At: serving.Time(i) * serving.Time(gap), Items: 1, Variant: serving.None, Sample: -1,
		})
	}
	return workload.FromSlice(a)
}

// sleep waits as a server would.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var coarse = &pacer{s: timerSleeper{}}

func oneApp(s *Samples) []App {
	return []App{
		{
			Name: "digits", SLO: serving.SLO{
				Latency: 100 * time.Millisecond, Percentile: 95,
			}, BestAccuracy: 0.95, Samples: s,
		},
	}
}

// A server that stalls is charged for every query of the stall, not only for the first.
func TestLatencyCountsFromTheSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now().Add(startDelay)
		f := &fake{infer: func(ctx context.Context, n int, r *Request) (*Answer, error) {
			if left := time.Until(start.Add(time.Second)); left > 0 { // nothing is answered in the first second
				if err := sleep(ctx, left); err != nil {
					return nil, err
				}
			}
			return echo(r), nil
		}}
		res, err := Run(t.Context(), f, oneApp(numbers(5)), even(200, 10*time.Millisecond),
			Options{Duration: 2 * time.Second, pacer: coarse})
		if err != nil {
			t.Fatal(err)
		}
		o := &res.Report.Overall
		// Queries 0 to 89 wait for more than 100 ms, query 90 for exactly that long.
		if o.Served != 200 || o.Late != 90 {
			t.Errorf("%d served, %d late, want 200 and 90", o.Served, o.Late)
		}
		if o.Latency.Max != 1000 || res.SendLag.Max != 0 {
			t.Errorf("longest latency %v ms with a lag of %v ms, want 1000 and 0", o.Latency.Max, res.SendLag.Max)
		}
		if o.MeasuredAccuracy == nil || *o.MeasuredAccuracy != 1 || *o.EffectiveAccuracy < 0.899 || *o.MeanBatch != 2 ||
			o.Queue.P50 != 1 {
			t.Errorf("answers were not read: %+v", o)
		}
		if o.Throughput != 100 || res.Interrupted || len(res.Variants) != 1 || res.Variants[0].Variant != "v1" ||
			res.Report.Variants[0].Served != 200 || res.Report.Variants[0].Name != "v1" {
			t.Errorf("throughput %v, variants %+v", o.Throughput, res.Report.Variants)
		}
	})
}

func TestOutstandingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{infer: func(ctx context.Context, n int, r *Request) (*Answer, error) {
			if err := sleep(ctx, 95*time.Millisecond); err != nil {
				return nil, err
			}
			return echo(r), nil
		}}
		// One query in 10 ms that takes 95 ms: at most ten are under way. With room for five, five of every ten are
		// refused.
		res, err := Run(t.Context(), f, oneApp(numbers(5)), even(100, 10*time.Millisecond),
			Options{MaxOutstanding: 5, pacer: coarse})
		if err != nil {
			t.Fatal(err)
		}
		o := &res.Report.Overall
		if o.Offered != 100 || o.Refused != res.ClientRefused || o.Served+o.Refused != 100 || o.Refused != 50 {
			t.Errorf("%d offered, %d served, %d refused (%d by the client), want 100, 50, 50, 50", o.Offered, o.Served,
				o.Refused, res.ClientRefused)
		}
		if len(res.Errors) != 1 || res.Errors[0].Message != notSentText {
			t.Errorf("errors: %+v", res.Errors)
		}
		if len(f.seen) != 50 {
			t.Errorf("%d were sent", len(f.seen))
		}
	})
}

func TestOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{infer: func(ctx context.Context, n int, r *Request) (*Answer, error) {
			switch n % 5 {
			case 0:
				return nil, &Error{Outcome: serving.Refused, Message: fmt.Sprintf("query %d refused: queue full", n)}
			case 1:
				return nil, fmt.Errorf("wrapped: %w", &Error{Outcome: serving.Dropped, Message: "too late"})
			case 2:
				return nil, errors.New("broken pipe")
			case 3:
				<-ctx.Done()
				return nil, ctx.Err()
			}
			a := echo(r)
			a.Accuracy = 0
			a.Outputs[0].Data = make([]byte, 8)
			return a, nil
		}}
		apps := oneApp(numbers(50))
		apps[0].Accuracy = map[string]float64{"v1": 0.7}
		res, err := Run(t.Context(), f, apps, even(50, time.Millisecond), Options{
			Timeout: 200 * time.Millisecond, pacer: coarse,
		})
		if err != nil {
			t.Fatal(err)
		}
		o := &res.Report.Overall
		if o.Refused != 10 || o.Dropped != 20 || o.Failed != 10 || o.Served != 10 || o.Cancelled != 0 {
			t.Errorf("outcomes: %+v", o)
		}
		if *o.EffectiveAccuracy < 0.699 || *o.EffectiveAccuracy > 0.701 || *o.MeasuredAccuracy != 0 {
			t.Errorf("accuracy %v and %v, want 0.7 from the table and 0 measured", *o.EffectiveAccuracy,
				*o.MeasuredAccuracy)
		}
		found := false
		for _, e := range res.Errors {
			found = found || e.Message == "refused: query # refused: queue full" && e.Count == 10
		}
		if !found {
			t.Errorf("errors: %+v", res.Errors)
		}
		var table, js bytes.Buffer
		if err := res.Report.Table(&table); err != nil {
			t.Fatal(err)
		}
		if err := res.JSON(&js); err != nil {
			t.Fatal(err)
		}
	})
}

func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second+startDelay)
		defer cancel()
		f := &fake{infer: func(ctx context.Context, n int, r *Request) (*Answer, error) {
			if n < 50 {
				return echo(r), nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		res, err := Run(ctx, f, oneApp(numbers(5)), even(10_000, 10*time.Millisecond),
			Options{Duration: 100 * time.Second, pacer: coarse})
		if err != nil {
			t.Fatal(err)
		}
		o := &res.Report.Overall
		if !res.Interrupted || o.Served != 50 || o.Cancelled < 45 || o.Offered > 110 || res.Report.DurationS > 1.1 {
			t.Errorf("interrupted %v after %v s: %+v", res.Interrupted, res.Report.DurationS, o)
		}
	})
}

func TestRequestsCarryTheArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{infer: func(ctx context.Context, n int, r *Request) (*Answer, error) { return echo(r), nil }}
		src := workload.FromSlice([]workload.Arrival{
			{At: 5, App: 1, Items: 3, Priority: 2, Timeout: time.Second, MinAccuracy: 0.5, Variant: 4, Sample: 3},
		})
		apps := append(oneApp(numbers(5)), App{Name: "b", Model: "model-b", Samples: numbers(5)})
		shown := 0
		res, err := Run(t.Context(), f, apps, src, Options{Version: func(v serving.VariantID) string {
			return fmt.Sprint("v", v)
		}, pacer: coarse, Progress: func(Progress) { shown++ }})
		if err != nil {
			t.Fatal(err)
		}
		r := f.seen[0]
		if r.Model != "model-b" || r.Version != "v4" || r.Timeout != time.Second || r.Priority != 2 ||
			r.MinAccuracy != 0.5 || r.Inputs[0].Shape[0] != 3 {
			t.Errorf("request %+v", r)
		}
		// Samples 3, 4 and, wrapping around, 0.
		if want := []byte{
			3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		}; !bytes.Equal(r.Inputs[0].Data, want) {
			t.Errorf("data %v", r.Inputs[0].Data)
		}
		if shown == 0 {
			t.Error("no progress was shown")
		}
		var b bytes.Buffer
		if err := res.WriteRecords(&b); err != nil {
			t.Fatal(err)
		}
		got, _, err := workload.ReadArrivals(&b, func(app string) (serving.AppID, error) {
			return 1, nil
		}, func(_ serving.AppID, v string) (serving.VariantID, error) { return 4, nil })
		if err != nil {
			t.Fatal(err)
		}
		src = workload.FromSlice([]workload.Arrival{
			{At: 5, App: 1, Items: 3, Priority: 2, Timeout: time.Second, MinAccuracy: 0.5, Variant: 4, Sample: 3},
		})
		if want, _ := src.Next(); !reflect.DeepEqual(got[0], want) {
			t.Errorf("a replay would send %+v, want %+v", got[0], want)
		}
	})
}

func TestRunRefuses(t *testing.T) {
	f := &fake{}
	for want, run := range map[string]func() (*Result, error){
		"no queries": func() (*Result, error) { return Run(t.Context(), f, oneApp(numbers(1)), even(0, 1), Options{}) },
		"samples":    func() (*Result, error) { return Run(t.Context(), f, oneApp(nil), even(1, 1), Options{}) },
		"app 0":      func() (*Result, error) { return Run(t.Context(), f, nil, even(1, 1), Options{}) },
	} {
		if _, err := run(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}

// The real pacer is never early, and stops when its context ends.
func TestPacer(t *testing.T) {
	p := newPacer()
	defer p.close()
	start := time.Now()
	for i := range 40 {
		due := start.Add(time.Duration(i) * 700 * time.Microsecond)
		if err := p.wait(t.Context(), due); err != nil {
			t.Fatal(err)
		}
		if early := time.Until(due); early > 0 {
			t.Fatalf("wait %d ended %v early", i, early)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if err := p.wait(ctx, time.Now().Add(time.Hour)); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled wait returned %v", err)
	}
}

func BenchmarkPacerLag(b *testing.B) {
	p := newPacer()
	defer p.close()
	total := time.Duration(0)
	for b.Loop() {
		due := time.Now().Add(400 * time.Microsecond)
		if err := p.wait(b.Context(), due); err != nil {
			b.Fatal(err)
		}
		total += time.Since(due)
	}
	b.ReportMetric(float64(total.Nanoseconds())/float64(b.N), "lag-ns/op")
}
