package dataplane_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/internal/systems"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runtime is a backend whose runs are a function.
type runtime struct {
	run      func(ctx context.Context, b *dataplane.Batch) error
	launches atomic.Int32
	closes   atomic.Int32
}

func (r *runtime) Launch(context.Context, dataplane.InstanceSpec) (dataplane.Runner, error) {
	r.launches.Add(1)
	return r, nil
}
func (r *runtime) Load(context.Context, serving.VariantID, int) error { return nil }
func (r *runtime) Unload(context.Context, serving.VariantID) error    { return nil }
func (r *runtime) Close() error                                       { r.closes.Add(1); return nil }
func (r *runtime) Run(ctx context.Context, b *dataplane.Batch) error  { return r.run(ctx, b) }

func echo(_ context.Context, b *dataplane.Batch) error {
	for k := range b.Portions {
		b.Portions[k].Outputs = b.Portions[k].Inputs
	}
	return nil
}

func plane(t *testing.T, r *runtime, slo time.Duration, c dataplane.Config) *dataplane.Plane {
	t.Helper()
	return planeOf(t, simtest.Uniform(1, time.Millisecond, time.Millisecond, slo, 8), r, c)
}

// planeOf is a plane of the default system on a cluster.
func planeOf(t *testing.T, w *simtest.Cluster, r *runtime, c dataplane.Config) *dataplane.Plane {
	t.Helper()
	s, err := systems.Get("sluice")
	if err != nil {
		t.Fatal(err)
	}
	c.Spec, c.Initial = w.Spec, w.Plan
	if c.Engine, err = s.Engine(w.Spec, w.Profile, w.Planner.Provides()); err != nil {
		t.Fatal(err)
	}
	c.Backend = func(serving.WorkerID) dataplane.Backend { return r }
	p, err := dataplane.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func one() *dataplane.Request {
	return &dataplane.Request{
		Items: 1, Variant: serving.None, Inputs: []tensor.Tensor{
			{Name: "x", DType: tensor.Int8, Shape: []int64{1}, Data: []byte{7}},
		},
	}
}

func outcome(err error) serving.Outcome {
	var e *dataplane.Error
	if errors.As(err, &e) {
		return e.Outcome
	}
	return serving.Served
}

func TestInfer(t *testing.T) {
	r := &runtime{run: echo}
	p := plane(t, r, time.Second, dataplane.Config{})
	a, err := p.Infer(t.Context(), one())
	if err != nil || a.Outputs[0].Data[0] != 7 || a.BatchSize != 1 || a.Query != 1 || a.Accuracy != 0.9 {
		t.Errorf("%+v %v", a, err)
	}
	if _, err := p.Infer(t.Context(), &dataplane.Request{App: 5}); outcome(err) != serving.Refused ||
		!strings.Contains(err.Error(), "no such app") {
		t.Errorf("unknown app: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Infer(ctx, one()); outcome(err) != serving.Cancelled {
		t.Errorf("cancelled before: %v", err)
	}
	pending := -1
	if !p.Inspect(func(e *engine.Engine) { pending = e.Pending() }) || pending != 0 {
		t.Errorf("%d pending", pending)
	}
	p.Close()
	p.Close()
	if _, err := p.Infer(t.Context(), one()); outcome(err) != serving.Refused {
		t.Errorf("after Close: %v", err)
	}
	if p.Inspect(func(*engine.Engine) { t.Error("inspected after Close") }) {
		t.Error("Inspect after Close says that it ran")
	}
	if r.closes.Load() != r.launches.Load() {
		t.Errorf("%d runtimes launched, %d closed", r.launches.Load(), r.closes.Load())
	}
}

// A query whose outputs are larger than allowed has failed; its neighbours have not.
func TestOutputsOfAQueryAreBounded(t *testing.T) {
	r := &runtime{run: func(_ context.Context, b *dataplane.Batch) error {
		for k := range b.Portions {
			n := int64(b.Portions[k].Inputs[0].Data[0])
			b.Portions[k].Outputs = []tensor.Tensor{
				{Name: "y", DType: tensor.Int8, Shape: []int64{1, n}, Data: make([]byte, n)},
			}
		}
		return nil
	}}
	p := plane(t, r, time.Minute, dataplane.Config{Output: 7})
	defer p.Close()
	if _, err := p.Infer(t.Context(), one()); err != nil {
		t.Errorf("outputs of 7 bytes: %v", err)
	}
	large := one()
	large.Inputs[0].Data = []byte{8}
	want := (*dataplane.TooLargeError)(nil)
	if _, err := p.Infer(t.Context(), large); outcome(err) != serving.Failed || !errors.As(err, &want) ||
		!strings.Contains(err.Error(), "server.limits.output") || want.Bytes != 8 {
		t.Errorf("outputs of 8 bytes: %v, want a failure that names the limit", err)
	}
}

// A query gets the outputs that it names, in a batch with one that wants all; what nobody wants does not count towards
// the limit.
func TestOutputsThatAreWanted(t *testing.T) {
	r := &runtime{run: func(_ context.Context, b *dataplane.Batch) error {
		for k := range b.Portions {
			for _, n := range []int64{3, 90} {
				b.Portions[k].Outputs = append(b.Portions[k].Outputs, tensor.Tensor{
					Name: fmt.Sprint("y", n), DType: tensor.Int8, Shape: []int64{1, n}, Data: make([]byte, n),
				})
			}
		}
		return nil
	}}
	p := plane(t, r, time.Minute, dataplane.Config{Output: 91})
	defer p.Close()
	all := make(chan error, 1)
	p.Submit(one(), func(_ *dataplane.Response, err error) { all <- err })
	some := one()
	some.Outputs = []string{"y90"}
	if got, err := p.Infer(t.Context(), some); err != nil || len(got.Outputs) != 1 || got.Outputs[0].Name != "y90" {
		t.Errorf("%+v, %v", got, err)
	}
	if err := <-all; outcome(err) != serving.Failed {
		t.Errorf("all outputs: %v", err)
	}
}

// A runtime that panics fails its query, not the process; the next query is served.
func TestRuntimePanics(t *testing.T) {
	calls := 0
	p := plane(t, &runtime{run: func(ctx context.Context, b *dataplane.Batch) error {
		if calls++; calls == 1 {
			panic("on purpose")
		}
		return echo(ctx, b)
	}}, time.Second, dataplane.Config{})
	defer p.Close()
	if _, err := p.Infer(t.Context(), one()); outcome(err) != serving.Failed ||
		!strings.Contains(err.Error(), "on purpose") {
		t.Errorf("%v", err)
	}
	if _, err := p.Infer(t.Context(), one()); err != nil {
		t.Error(err)
	}
}

// A runtime that hangs, heeding nothing, loses its instance after RunTimeout; its query runs on the next one.
func TestRuntimeHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		calls := atomic.Int32{}
		r := &runtime{run: func(ctx context.Context, b *dataplane.Batch) error {
			if calls.Add(1) == 1 {
				<-release
				return nil
			}
			return echo(ctx, b)
		}}
		var trouble atomic.Int32
		p := plane(t, r, time.Minute, dataplane.Config{RunTimeout: 5 * time.Second, Trouble: func(error) {
			trouble.Add(1)
		}})
		begun := time.Now()
		if _, err := p.Infer(t.Context(), one()); err != nil {
			t.Errorf("%v", err)
		}
		if took := time.Since(begun); took < 5*time.Second || took > 8*time.Second {
			t.Errorf("answered after %v, want shortly after the run timeout", took)
		}
		if r.launches.Load() != 2 || trouble.Load() == 0 {
			t.Errorf("%d launches, %d troubles", r.launches.Load(), trouble.Load())
		}
		close(release)
		p.Close()
	})
}

// A query whose client's deadline passes says so in its error: the client did not go away by itself.
func TestADeadlineThatPassesIsTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		held := &runtime{run: func(context.Context, *dataplane.Batch) error { <-release; return nil }}
		p := plane(t, held, time.Minute, dataplane.Config{})
		for _, end := range []func() (context.Context, context.CancelFunc){
			func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Second) },
			func() (context.Context, context.CancelFunc) {
				ctx, stop := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, stop)
				return ctx, stop
			},
		} {
			ctx, stop := end()
			_, err := p.Infer(ctx, one())
			var e *dataplane.Error
			late := errors.Is(ctx.Err(), context.DeadlineExceeded)
			if !errors.As(err, &e) || e.Outcome != serving.Cancelled ||
				errors.Is(err, context.DeadlineExceeded) != late {
				t.Errorf("after %v: %v", ctx.Err(), err)
			}
			stop()
		}
		close(release)
		p.Close()
	})
}

// Without a fixed run timeout a hung runtime loses its instance after ten times the believed time, at least the
// objective: a minute is long for a model that takes milliseconds.
func TestHungRunsAreBoundedByTheProfile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		calls := atomic.Int32{}
		r := &runtime{run: func(ctx context.Context, b *dataplane.Batch) error {
			if calls.Add(1) == 1 {
				<-release
				return nil
			}
			return echo(ctx, b)
		}}
		p := plane(t, r, 3*time.Second, dataplane.Config{})
		patient := one()
		patient.Timeout = time.Hour
		begun := time.Now()
		if _, err := p.Infer(t.Context(), patient); err != nil {
			t.Errorf("%v", err)
		}
		if took := time.Since(begun); took < 3*time.Second || took > 6*time.Second { // on fake time
			t.Errorf("answered after %v, want shortly after the objective", took)
		}
		close(release)
		p.Close()
	})
}

// Drain: nothing new is taken, what was accepted is answered, and only then does it return.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := plane(t, &runtime{run: func(ctx context.Context, b *dataplane.Batch) error {
			time.Sleep(2 * time.Second)
			return echo(ctx, b)
		}}, time.Minute, dataplane.Config{})
		answers := make(chan error, 3)
		for range 3 {
			go func() { _, err := p.Infer(t.Context(), one()); answers <- err }()
		}
		synctest.Wait()
		begun := time.Now()
		if err := p.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		if time.Since(begun) < 2*time.Second {
			t.Error("drained before the queries were answered")
		}
		for range 3 {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		if _, err := p.Infer(t.Context(), one()); outcome(err) != serving.Refused {
			t.Errorf("after Drain: %v", err)
		}
		p.Close()
	})
}

// A client that goes away while its query waits: the query is taken back, and never runs.
func TestCancelTakesQueuedWorkBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := atomic.Int32{}
		p := plane(t, &runtime{run: func(ctx context.Context, b *dataplane.Batch) error {
			ran.Add(int32(len(b.Portions)))
			time.Sleep(time.Second)
			return echo(ctx, b)
		}}, time.Minute, dataplane.Config{})
		first := make(chan error, 1)
		go func() { _, err := p.Infer(t.Context(), one()); first <- err }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := p.Infer(ctx, one()); outcome(err) != serving.Cancelled {
			t.Errorf("%v", err)
		}
		if err := <-first; err != nil {
			t.Error(err)
		}
		if ran.Load() != 1 {
			t.Errorf("%d queries ran, want only the first", ran.Load())
		}
		p.Close()
	})
}

// Streams are refused that no app has, that say nothing sensible, or that are too many.
func TestOpenStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := plane(t, &runtime{run: echo}, time.Second, dataplane.Config{})
		defer p.Close()
		for _, c := range []struct {
			app    serving.AppID
			stream string
			rate   float64
			want   string
		}{
			{1, "a", 1, "does not exist"}, {-1, "a", 1, "does not exist"}, {0, "", 1, "needs a name"},
			{0, "a", -1, "finite"}, {0, "a", math.NaN(), "finite"}, {0, "a", math.Inf(1), "finite"},
		} {
			if err := p.OpenStream(c.app, c.stream, c.rate); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: %v", c, err)
			}
		}
		for s := range uint64(10_000) {
			if err := p.OpenStream(0, fmt.Sprint(s), 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.OpenStream(0, "more", 1); err == nil {
			t.Error("there is no end of streams")
		}
		if err := p.OpenStream(0, "7", 2); err != nil { // its rate
			t.Error(err)
		}
		p.CloseStream(0, "3")
		p.CloseStream(0, "3")
		if err := p.OpenStream(0, "more", 1); err != nil {
			t.Error(err)
		}
		p.Inspect(func(e *engine.Engine) {
			if err := e.Check(); err != nil {
				t.Error(err)
			}
		})
	})
}
