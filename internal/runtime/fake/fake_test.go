package fake

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

func spec(id serving.InstanceID, vs ...serving.VariantID) dataplane.InstanceSpec {
	return dataplane.InstanceSpec{ID: id, Variants: vs, BatchLimit: 8, Slots: 2}
}

func vec(name string, vals ...float32) tensor.Tensor {
	t := tensor.Tensor{Name: name, DType: tensor.FP32, Shape: []int64{int64(len(vals)), 1}}
	for _, v := range vals {
		t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(v))
	}
	return t
}

func batch(id serving.BatchID, v serving.VariantID, items ...int) *dataplane.Batch {
	b := &dataplane.Batch{ID: id, Variant: v}
	for i, n := range items {
		b.Items += n
		b.Portions = append(b.Portions, dataplane.Portion{
			Query: serving.QueryID(i + 1), Items: n, Inputs: []tensor.Tensor{vec("x", make([]float32, n)...)},
		})
	}
	return b
}

func mustNew(t testing.TB, cfg Config) *Backend {
	t.Helper()
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustLaunch(t testing.TB, b *Backend, s dataplane.InstanceSpec) dataplane.Runner {
	t.Helper()
	r, err := b.Launch(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTakesTheTimeItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{
			Latency: func(v serving.VariantID, items int) time.Duration {
				return time.Duration(v+1)*time.Millisecond + time.Duration(items)*time.Microsecond
			},
			Load: func(v serving.VariantID) time.Duration { return time.Duration(v+1) * time.Second },
		})
		start := time.Now()
		r := mustLaunch(t, b, spec(1, 0, 1))
		if got := time.Since(start); got != 3*time.Second {
			t.Errorf("launch took %v, want 1 s + 2 s", got)
		}
		start = time.Now()
		if err := r.Run(t.Context(), batch(1, 1, 3, 2)); err != nil {
			t.Fatal(err)
		}
		if got, want := time.Since(start), 2*time.Millisecond+5*time.Microsecond; got != want {
			t.Errorf("run took %v, want %v", got, want)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestZeroLatencyTakesNoTimeAndNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := mustLaunch(t, mustNew(t, Config{}), spec(1, 0))
		start := time.Now()
		b := batch(1, 0, 1)
		if err := r.Run(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if time.Since(start) != 0 {
			t.Error("a run without latency let time pass")
		}
		if len(b.Portions[0].Outputs) != 1 {
			t.Error("no output")
		}
	})
}

func TestEchoesCopies(t *testing.T) {
	label := tensor.Tensor{
		Name: "ignored", DType: tensor.Bytes, Shape: []int64{1}, Data: tensor.AppendBytes(nil, []byte("cat")),
	}
	r := mustLaunch(t, mustNew(t, Config{
		Outputs: []Output{{Name: "y", Input: "x"}, {Name: "label", Row: label}},
	}), spec(1, 0))
	b := &dataplane.Batch{ID: 1, Items: 3, Portions: []dataplane.Portion{
		{Query: 1, Items: 2, Inputs: []tensor.Tensor{vec("x", 1, 2)}},
		{Query: 2, Items: 1, Inputs: []tensor.Tensor{vec("x", 3)}},
	}}
	want := slices.Clone(b.Portions[0].Inputs[0].Data)
	if err := r.Run(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	clear(b.Portions[0].Inputs[0].Data) // outputs must not alias it
	y := b.Portions[0].Outputs[0]
	if y.Name != "y" || !slices.Equal(y.Shape, []int64{2, 1}) || !slices.Equal(y.Data, want) {
		t.Errorf("output 0 is %+v, want a copy of x named y", y)
	}
	for i := range b.Portions {
		for _, o := range b.Portions[i].Outputs {
			if err := o.Validate(); err != nil {
				t.Error(err)
			}
			if o.Shape[0] != int64(b.Portions[i].Items) {
				t.Errorf("part %d: output %q has %d rows for %d items", i, o.Name, o.Shape[0], b.Portions[i].Items)
			}
		}
	}
	b.Portions[0].Inputs[0].Name = "z"
	if err := r.Run(t.Context(), b); err == nil {
		t.Error("a missing input was accepted")
	}
}

func TestErrorRateDependsOnTheBatchOnly(t *testing.T) {
	failedBatches := func(seed uint64, order []int) []int {
		r := mustLaunch(t, mustNew(t, Config{Seed: seed, ErrorRate: 0.2}), spec(1, 0))
		var failed []int
		for _, id := range order {
			err := r.Run(t.Context(), batch(serving.BatchID(id), 0, 1))
			if err != nil && !errors.Is(err, ErrBatch) {
				t.Fatal(err)
			}
			if err != nil {
				failed = append(failed, id)
			}
		}
		slices.Sort(failed)
		return failed
	}
	order := make([]int, 5000)
	for i := range order {
		order[i] = i + 1
	}
	a := failedBatches(7, order)
	slices.Reverse(order)
	if !slices.Equal(a, failedBatches(7, order)) {
		t.Error("the order of batches changed which of them fail")
	}
	if slices.Equal(a, failedBatches(8, order)) {
		t.Error("another seed fails the same batches")
	}
	// 5,000 draws of p = 0.2 have a standard deviation of 28.
	if len(a) < 1000-5*28 || len(a) > 1000+5*28 {
		t.Errorf("%d of 5000 batches failed, want about 1000", len(a))
	}
}

func TestKillEndsRunningBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Latency: func(serving.VariantID, int) time.Duration { return time.Hour }})
		r := mustLaunch(t, b, spec(3, 0))
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				if err := r.Run(context.Background(), batch(serving.BatchID(i+1), 0, 1)); !errors.Is(err,
					dataplane.ErrInstanceLost) {
					t.Errorf("a batch on a killed instance ended with %v, want ErrInstanceLost", err)
				}
			})
		}
		time.Sleep(time.Second)
		if !b.Kill(3) {
			t.Error("Kill does not know the instance")
		}
		wg.Wait()
		if got := time.Since(start); got != time.Second {
			t.Errorf("batches ended after %v, want the moment of the loss", got)
		}
		if err := r.Run(t.Context(), batch(9, 0, 1)); !errors.Is(err, dataplane.ErrInstanceLost) {
			t.Errorf("a later batch ended with %v", err)
		}
		if err := r.Load(t.Context(), 4, 8); !errors.Is(err, dataplane.ErrInstanceLost) {
			t.Errorf("a later load ended with %v", err)
		}
		if b.Kill(3) {
			t.Error("Kill found an instance that is already lost")
		}
		if s := b.Stats(); s.Live != 0 || s.Failed != 3 || s.Batches != 3 {
			t.Errorf("stats are %+v", s)
		}
		_ = r.Close()
	})
}

func TestIsLostAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{
			Latency:   func(serving.VariantID, int) time.Duration { return 3 * time.Second },
			LoseAfter: func(id serving.InstanceID) (time.Duration, bool) { return 5 * time.Second, id == 1 },
		})
		doomed, safe := mustLaunch(t, b, spec(1, 0)), mustLaunch(t, b, spec(2, 0))
		for i, want := range []bool{true, false} {
			err := doomed.Run(t.Context(), batch(serving.BatchID(i+1), 0, 1))
			if (err == nil) != want {
				t.Errorf("batch %d ended with %v", i, err)
			}
		}
		if err := safe.Run(t.Context(), batch(9, 0, 1)); err != nil {
			t.Error(err)
		}
		_ = safe.Close()
	})
}

func TestLaunchFailsAsOftenAsAsked(t *testing.T) {
	b := mustNew(t, Config{LaunchFailures: 2})
	for i := range 4 {
		r, err := b.Launch(t.Context(), spec(serving.InstanceID(i+1), 0))
		if (err != nil) != (i < 2) {
			t.Errorf("launch %d: %v", i+1, err)
		}
		if err == nil {
			_ = r.Close()
		}
	}
	if s := b.Stats(); s.Launches != 4 || s.Live != 0 {
		t.Errorf("stats are %+v", s)
	}
}

func TestGivesUpWhenTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{
			Latency: func(serving.VariantID, int) time.Duration { return time.Minute },
			Load:    func(serving.VariantID) time.Duration { return 10 * time.Second },
		})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := b.Launch(ctx, spec(1, 0)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("launch ended with %v", err)
		}
		r := mustLaunch(t, b, spec(2, 0))
		ctx, cancel = context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		if err := r.Run(ctx, batch(1, 0, 1)); !errors.Is(err, context.DeadlineExceeded) ||
			time.Since(start) != time.Second {
			t.Errorf("run ended with %v after %v", err, time.Since(start))
		}
		_ = r.Close()
	})
}

func TestRefusesWhatNoCallerMayAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mustNew(t, Config{Latency: func(serving.VariantID, int) time.Duration { return time.Second }})
		r := mustLaunch(t, b, spec(1, 0))
		wrong := batch(1, 0, 1)
		wrong.Items = 2
		for name, b := range map[string]*dataplane.Batch{
			"not loaded": batch(1, 5, 1), "over the limit": batch(1, 0, 9), "no parts": {ID: 1},
			"no items": batch(1, 0, 0), "wrong sum": wrong,
		} {
			if err := r.Run(t.Context(), b); err == nil {
				t.Errorf("%s: accepted", name)
			}
		}
		var wg sync.WaitGroup
		errs := make([]error, 3)
		for i := range errs {
			wg.Go(func() { errs[i] = r.Run(t.Context(), batch(serving.BatchID(i+1), 0, 1)) })
		}
		wg.Wait()
		n := 0
		for _, err := range errs {
			if err != nil {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d of 3 batches were refused by 2 slots, want 1", n)
		}
		if err := r.Unload(t.Context(), 0); err != nil {
			t.Error(err)
		}
		if err := r.Unload(t.Context(), 0); err == nil {
			t.Error("unloaded twice")
		}
		if err := r.Run(t.Context(), batch(7, 0, 1)); err == nil {
			t.Error("an unloaded variant ran")
		}
		_ = r.Close()
		if err := r.Run(t.Context(), batch(8, 0, 1)); err == nil {
			t.Error("a closed instance ran")
		}
	})
	for _, cfg := range []Config{
		{ErrorRate: -1}, {ErrorRate: math.NaN()}, {LaunchFailures: -1}, {Outputs: []Output{{}}},
		{Outputs: []Output{{Name: "y"}}},
		{Outputs: []Output{{Name: "y", Row: vec("y", 1, 2)}}},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
	if _, err := mustNew(t, Config{}).Launch(t.Context(), dataplane.InstanceSpec{BatchLimit: 1}); err == nil {
		t.Error("an instance without slots was launched")
	}
}

func TestTableInterpolates(t *testing.T) {
	ms := time.Millisecond
	m := serving.Measurements{Latency: []serving.LatencyPoint{
		{Variant: 0, Items: 4, Concurrency: 1, Mean: 40 * ms},
		{Variant: 0, Items: 1, Concurrency: 1, Mean: 10 * ms},
		{Variant: 0, Items: 8, Concurrency: 1, Mean: 60 * ms},
		{Variant: 0, Items: 1, Concurrency: 2, Mean: 999 * ms},
		{Variant: 0, Items: 1, Concurrency: 1, DeviceType: 1, Mean: 999 * ms},
		{Variant: 1, Items: 2, Concurrency: 1, Mean: 10 * ms},
	}}
	f := Table(m, 0)
	for _, c := range []struct {
		v     serving.VariantID
		items int
		want  time.Duration
	}{
		{0, 1, 10 * ms}, {0, 2, 20 * ms}, {0, 4, 40 * ms}, {0, 6, 50 * ms}, {0, 8, 60 * ms}, {0, 10, 70 * ms},
		{1, 1, 5 * ms}, {1, 4, 20 * ms}, {2, 1, 0},
	} {
		if got := f(c.v, c.items); got != c.want {
			t.Errorf("variant %d, %d items: %v, want %v", c.v, c.items, got, c.want)
		}
	}
}

func BenchmarkZeroLatencyRun(b *testing.B) {
	r := mustLaunch(b, mustNew(b, Config{}), spec(1, 0))
	ba := batch(1, 0, 1)
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Run(b.Context(), ba); err != nil {
			b.Fatal(err)
		}
	}
}

// What is found in the items of a query comes to as much in parts as in one.
func TestFinds(t *testing.T) {
	r := mustLaunch(t, mustNew(t, Config{
		RowOutputs: map[serving.VariantID][]RowOutput{0: {{Name: "x", PerItem: 2.5}, {Name: "none"}}},
	}), spec(1, 0))
	whole := batch(1, 0, 5)
	parts := batch(2, 0, 2, 3)
	parts.Portions[1].Offset = 2
	for _, b := range []*dataplane.Batch{whole, parts} {
		if err := r.Run(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	rows := func(p *dataplane.Portion, name string) int64 {
		at := slices.IndexFunc(p.Outputs, func(t tensor.Tensor) bool { return t.Name == name })
		if len(p.Outputs) != 2 || at < 0 || p.Outputs[at].Validate() != nil {
			t.Fatalf("%+v", p.Outputs)
		}
		return p.Outputs[at].Shape[0]
	}
	if n := rows(&whole.Portions[0], "x"); n != 13 {
		t.Errorf("%d rows for 5 items", n)
	}
	if a, b := rows(&parts.Portions[0], "x"), rows(&parts.Portions[1], "x"); a != 5 || b != 8 {
		t.Errorf("%d and %d rows for 2 and 3 items", a, b)
	}
	if n := rows(&whole.Portions[0], "none"); n != 0 {
		t.Errorf("%d rows of nothing", n)
	}
	if _, err := New(Config{RowOutputs: map[serving.VariantID][]RowOutput{0: {{Name: "x", PerItem: -1}}}}); err == nil {
		t.Error("fewer than nothing was found")
	}
}
