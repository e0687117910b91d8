package profiler

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/runtime/fake"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// picky refuses some batches, and some launches.
type picky struct {
	dataplane.Backend
	launch func(v serving.VariantID) error
	run    func(b *dataplane.Batch) error
}

func (p *picky) Launch(ctx context.Context, s dataplane.InstanceSpec) (dataplane.Runner, error) {
	if p.launch != nil {
		if err := p.launch(s.Variants[0]); err != nil {
			return nil, err
		}
	}
	r, err := p.Backend.Launch(ctx, s)
	return pickyRunner{r, p}, err
}

type pickyRunner struct {
	dataplane.Runner
	p *picky
}

func (r pickyRunner) Run(ctx context.Context, b *dataplane.Batch) error {
	if err := r.p.run(b); err != nil {
		return err
	}
	return r.Runner.Run(ctx, b)
}

// sizes lists the batch sizes that a file has points of, for a variant.
func sizes(f *File, variant string) (out []int) {
	for _, p := range f.Points {
		if p.Variant == variant {
			out = append(out, p.Batch)
		}
	}
	return out
}

// One model that fails does not keep the others from being measured, wherever it stands and however it fails.
func TestOneThatFailsStopsNoOther(t *testing.T) {
	for odd := range serving.VariantID(3) {
		for name, how := range map[string]struct {
			launch func(serving.VariantID) error
			from   int // items with which it fails; 0 for none
			batch  int
			sizes  []int
		}{
			"does not load":   {launch: func(serving.VariantID) error { return errors.New("no good") }},
			"does not run":    {from: 1, batch: 1},
			"runs with one":   {from: 2, batch: 2, sizes: []int{1}},
			"runs with three": {from: 4, batch: 4, sizes: []int{1, 2}},
		} {
			t.Run(fmt.Sprint(odd, " ", name), func(t *testing.T) {
				p := &picky{Backend: backend(t, fake.Config{})}
				p.launch = func(v serving.VariantID) error {
					if v == odd && how.launch != nil {
						return how.launch(v)
					}
					return nil
				}
				p.run = func(b *dataplane.Batch) error {
					if b.Variant == odd && how.from > 0 && b.Items >= how.from {
						return errors.New("not so many")
					}
					return nil
				}
				cfg := Config{Spec: world(3, 4, time.Second), Backend: p, Input: rows, MaxSamples: 10, Slots: 2}
				run, err := Run(t.Context(), cfg, nil)
				if err != nil {
					t.Fatal(err)
				}
				look, err := Look(t.Context(), cfg, time.Minute, nil)
				if err != nil {
					t.Fatal(err)
				}
				for what, f := range map[string]*File{"run": run, "look": look} {
					for v := range serving.VariantID(3) {
						name := cfg.Spec.Variants[v].Name
						want := []int{1, 2, 4}
						if v == odd {
							want = how.sizes
						}
						got := slices.Compact(slices.Sorted(slices.Values(sizes(f, name))))
						if x := f.Failure(name, "cpu"); (x != nil) != (v == odd) || !slices.Equal(got, want) ||
							x != nil && x.Batch != how.batch {
							t.Errorf("%s of %s: sizes %v, failure %+v", what, name, got, x)
						}
					}
				}
			})
		}
	}
}

// Where a size fails, larger ones say nothing of it, not even those that are measured already: a profile of these alone
// would have the smaller take as long.
func TestSizesAboveOneThatFailsDoNotCount(t *testing.T) {
	for fails, want := range map[int][]int{1: nil, 2: {1}, 4: {1, 2}} {
		synctest.Test(t, func(t *testing.T) {
			ran := 0
			p := &picky{Backend: backend(t, fake.Config{})}
			p.run = func(b *dataplane.Batch) error {
				if b.Items != fails {
					return nil
				}
				if ran++; ran > 200 {
					return errors.New("not any more")
				}
				time.Sleep(time.Duration(ran%2) * 100 * time.Millisecond) // so that it is not known when the others are
				return nil
			}
			f, err := Run(t.Context(), Config{Spec: world(1, 4, time.Second), Backend: p, Input: rows, Slots: 1,
				MaxTime: time.Hour}, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := slices.Compact(slices.Sorted(slices.Values(sizes(f, "a"))))
			if x := f.Failure("a", "cpu"); x == nil || x.Batch != fails || !slices.Equal(got, want) {
				t.Errorf("%d fails: %+v, sizes %v, want %v", fails, x, got, want)
			}
		})
	}
}

// A look takes about as long as it may: sizes for which there is no time are left out, but two items always run.
func TestLookKeepsToItsTime(t *testing.T) {
	for _, c := range []struct {
		item  time.Duration
		sizes []int
	}{
		{time.Microsecond, []int{1, 2, 4, 8, 16, 32, 64}}, {ms, []int{1, 2, 4, 8}}, {time.Second, []int{1, 2}},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := backend(t, fake.Config{Latency: func(_ serving.VariantID, items int) time.Duration {
				return c.item * time.Duration(items)
			}})
			begun := time.Now()
			f, err := Look(t.Context(), Config{Spec: world(1, 64, time.Minute), Backend: b, Input: rows}, 50*ms, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := sizes(f, "a"); !slices.Equal(got, c.sizes) {
				t.Errorf("%v an item: sizes %v, want %v", c.item, got, c.sizes)
			}
			// Beside its time: the first run of one item, and one run of one and of two.
			if took := time.Since(begun); took > 100*ms+5*c.item {
				t.Errorf("%v an item: a look of 50ms took %v", c.item, took)
			}
			for _, p := range f.Points {
				if want := float64(c.item) / 1e3 * float64(p.Batch); p.Mean != want {
					t.Errorf("%d items take %v us, want %v", p.Batch, p.Mean, want)
				}
			}
		})
	}
}

// Inputs that nobody gave are guessed until a model runs: other integers, and longer open dimensions.
func TestGuessesSuitWhatAModelReads(t *testing.T) {
	specs := []tensor.Spec{
		{Name: "x", DType: tensor.FP32, Shape: []int64{-1, -1}},
		{Name: "n", DType: tensor.Int64, Shape: []int64{-1, 2}},
	}
	values := func(b *dataplane.Batch) (length, first, second int64) {
		in := b.Portions[0].Inputs
		n := in[1].Data
		return in[0].Shape[1], int64(binary.LittleEndian.Uint64(n)), int64(binary.LittleEndian.Uint64(n[8:]))
	}
	for name, suits := range map[string]func(length, first, second int64) bool{
		"a divisor": func(_, a, b int64) bool { return a > 0 && b > 0 },
		"two axes":  func(_, a, b int64) bool { return a != b },
		"a window":  func(n, _, _ int64) bool { return n >= 400 },
	} {
		ran := 0
		p := &picky{Backend: backend(t, fake.Config{}), run: func(b *dataplane.Batch) error {
			if !suits(values(b)) {
				return errors.New("not with these")
			}
			ran++
			return nil
		}}
		f, err := Look(t.Context(), Config{
			Spec: world(1, 2, time.Second), Backend: p,
			Tensors: func(serving.VariantID) ([]tensor.Spec, bool, error) { return specs, true, nil },
		}, ms, nil)
		if err != nil {
			t.Fatal(err)
		}
		if x := f.Failure("a", "cpu"); x != nil || ran == 0 || !slices.Equal(sizes(f, "a"), []int{1, 2}) {
			t.Errorf("%s: %d runs, failure %+v, sizes %v", name, ran, x, sizes(f, "a"))
		}
	}
}

// The random inputs of a model do not depend on the models beside it.
func TestInputsDoNotDependOnThePlace(t *testing.T) {
	specs := []tensor.Spec{{Name: "x", DType: tensor.FP32, Shape: []int64{-1, 8}}}
	seen := make(map[string][]byte)
	for _, before := range []int{0, 1, 7} {
		cfg := Config{
			Spec: world(before+2, 1, time.Second), Seed: 3,
			Tensors: func(serving.VariantID) ([]tensor.Spec, bool, error) { return specs, true, nil },
		}
		for k, name := range []string{"model", "other"} {
			v := serving.VariantID(before + k)
			cfg.Spec.Variants[v].Name = name
			s, err := newSource(&cfg, v)
			if err != nil {
				t.Fatal(err)
			}
			b, err := s.batch(1)
			if err != nil {
				t.Fatal(err)
			}
			data := b.Portions[0].Inputs[0].Data
			if was := seen[name]; was != nil && !slices.Equal(was, data) {
				t.Errorf("%s after %d others: other inputs", name, before)
			}
			seen[name] = data
		}
	}
	if slices.Equal(seen["model"], seen["other"]) {
		t.Error("all models have the same inputs")
	}
}

// Two items that are alike are among what a look runs: a model may give as many rows as it was given different ones.
func TestLookRunsTwoThatAreAlike(t *testing.T) {
	p := &picky{Backend: backend(t, fake.Config{})}
	p.run = func(b *dataplane.Batch) error {
		for k := range b.Portions[1:] {
			if bytes.Equal(b.Portions[k].Inputs[0].Data, b.Portions[k+1].Inputs[0].Data) {
				return errors.New("one row for two")
			}
		}
		return nil
	}
	n := byte(0)
	different := func(v serving.VariantID, items int) []tensor.Tensor {
		x := rows(v, items)
		for at := range x[0].Data {
			n++
			x[0].Data[at] = n
		}
		return x
	}
	f, err := Look(t.Context(), Config{Spec: world(1, 4, time.Second), Backend: p, Input: different}, time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	if x := f.Failure("a", "cpu"); x == nil || x.Batch != 2 || !slices.Equal(sizes(f, "a"), []int{1}) {
		t.Errorf("failure %+v, sizes %v", x, sizes(f, "a"))
	}
}
