package profiler

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/runtime/fake"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

const ms = time.Millisecond

func world(variants int, maxBatch int, slo time.Duration) *serving.Spec {
	s := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "cpu"}},
		Apps:        []serving.App{{Name: "app", SLO: serving.SLO{Latency: slo, Percentile: 99}}},
		Stages:      []serving.Stage{{Name: "stage"}},
	}
	for v := range variants {
		s.Variants = append(s.Variants, serving.Variant{Name: string(rune('a' + v)), MaxBatch: maxBatch})
	}
	return s
}

func rows(_ serving.VariantID, items int) []tensor.Tensor {
	return []tensor.Tensor{
		{Name: "x", DType: tensor.Uint8, Shape: []int64{int64(items), 2}, Data: make([]byte, 2*items)},
	}
}

func backend(t *testing.T, cfg fake.Config) *fake.Backend {
	t.Helper()
	b, err := fake.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMeasuresWhatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		latency := func(v serving.VariantID, items int) time.Duration {
			return time.Duration(v+1)*ms + time.Duration(items)*100*time.Microsecond
		}
		b := backend(t, fake.Config{Latency: latency, Load: func(v serving.VariantID) time.Duration {
			return time.Duration(v+1) * time.Second
		}})
		var last, total int
		f, err := Run(t.Context(), Config{Spec: world(2, 6, time.Second), Backend: b, Slots: 2, Input: rows, Seed: 1},
			func(done, n int, what string) {
				if done != last+1 || what == "" {
					t.Errorf("progress %d after %d: %q", done, last, what)
				}
				last, total = done, n
			})
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Points) != 2*2*4 || last != 16 || total != 16 {
			t.Fatalf("%d points, progress %d of %d", len(f.Points), last, total)
		}
		m, err := f.Measurements(world(2, 6, time.Second))
		if err != nil {
			t.Fatal(err)
		}
		var sizes []int
		for _, p := range m.Latency {
			want := latency(p.Variant, p.Items)
			if p.Mean != want || p.P50 != want || p.P95 != want || p.P99 != want || p.StdDev != 0 {
				t.Errorf("%+v, want %v", p, want)
			}
			if p.Samples < 72 {
				t.Errorf("%d samples cannot tell the 95th percentile", p.Samples)
			}
			if p.Variant == 0 && p.Concurrency == 2 {
				sizes = append(sizes, p.Items)
			}
		}
		if !slices.Equal(sizes, []int{1, 2, 4, 6}) {
			t.Errorf("batch sizes %v", sizes)
		}
		for _, l := range m.Load {
			if l.Load != time.Duration(l.Variant+1)*time.Second {
				t.Errorf("load %+v", l)
			}
		}
		if s := b.Stats(); s.Live != 0 {
			t.Errorf("%d instances were left running", s.Live)
		}
	})
}

// noisy returns latencies with exponential noise of the given mean above a floor.
func noisy(seed uint64, floor, mean time.Duration) func(serving.VariantID, int) time.Duration {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 1))
	return func(serving.VariantID, int) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return floor + time.Duration(rng.ExpFloat64()*float64(mean))
	}
}

func TestStopsWhenKnownWellEnough(t *testing.T) {
	samples := func(mean time.Duration, cfg Config) Point {
		var p Point
		synctest.Test(t, func(t *testing.T) {
			cfg.Spec, cfg.Backend, cfg.Input = world(1, 1, time.Second),
				backend(t, fake.Config{Latency: noisy(3, ms, mean)}), rows
			cfg.MaxTime = time.Hour
			f, err := Run(t.Context(), cfg, nil)
			if err != nil {
				t.Fatal(err)
			}
			p = f.Points[0]
		})
		return p
	}
	steady, noisy := samples(ms/10, Config{MaxSamples: 1e6}), samples(ms, Config{MaxSamples: 1e6})
	if steady.Samples >= noisy.Samples {
		t.Errorf("a steady point took %d samples, a noisy one %d", steady.Samples, noisy.Samples)
	}
	// 1 ms plus an exponential time of mean 1 ms: mean 2 ms, 95th percentile 1 + ln 20 ms. The tolerance is three times
	// the width.
	if math.Abs(noisy.Mean-2000) > 3*0.05*2000 || math.Abs(noisy.P95-(1000+1000*math.Log(20))) > 3*0.1*4000 {
		t.Errorf("measured %+v", noisy)
	}
	loose := samples(ms, Config{MaxSamples: 1e6, MeanWidth: 0.2, P95Width: 0.4})
	if loose.Samples >= noisy.Samples {
		t.Errorf("lower demands took %d samples, higher ones %d", loose.Samples, noisy.Samples)
	}
	if capped := samples(ms, Config{MaxSamples: 100}); capped.Samples != 100 {
		t.Errorf("%d samples, at most 100 were allowed", capped.Samples)
	}
}

func TestGivesUpOnWhatIsTooSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		largest := 0
		b := backend(t, fake.Config{Latency: func(_ serving.VariantID, items int) time.Duration {
			largest = max(largest, items)
			return time.Duration(items) * 30 * ms
		}})
		// Four times the SLO is 200 ms. 8 items take 240 ms and are the last size that is measured.
		f, err := Run(t.Context(), Config{Spec: world(1, 64, 50*ms), Backend: b, Input: rows}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if largest != 8 || len(f.Points) != 4 {
			t.Errorf("ran batches up to %d, recorded %d points", largest, len(f.Points))
		}
	})
}

func TestTimeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backend(t, fake.Config{Latency: func(serving.VariantID, int) time.Duration { return time.Second }})
		start := time.Now()
		f, err := Run(t.Context(), Config{
			Spec: world(1, 1, time.Minute), Backend: b, Input: rows, MaxTime: 5 * time.Second,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 8*time.Second || f.Points[0].Samples < 2 {
			t.Errorf("took %v for %d samples", took, f.Points[0].Samples)
		}
	})
}

// The time for all points is divided evenly among them, and progress is told by it.
func TestTimeForAllPointsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backend(t, fake.Config{Latency: func(_ serving.VariantID, items int) time.Duration {
			return time.Duration(items) * time.Second
		}})
		var shares []float64
		start := time.Now()
		f, err := Run(t.Context(), Config{
			Spec: world(2, 4, time.Minute), Backend: b, Input: rows, MaxTime: time.Hour, Within: time.Minute,
		}, func(done, total int, _ string) { shares = append(shares, float64(done)/float64(total)) })
		if err != nil {
			t.Fatal(err)
		}
		// The first samples, each after a run that does not count, take 28 s. After a minute each point has its last.
		if took := time.Since(start); took > time.Minute+15*time.Second || len(f.Points) != 6 {
			t.Errorf("took %v for %d points", took, len(f.Points))
		}
		for _, p := range f.Points {
			if p.Samples < 3 || p.Samples > 5 {
				t.Errorf("%s batch %d has %d samples", p.Variant, p.Batch, p.Samples)
			}
		}
		if !slices.IsSorted(shares) || len(shares) < 18 || shares[len(shares)-1] != 1 {
			t.Errorf("progress %v", shares)
		}
	})
}

func TestConcurrencyIsReal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A machine whose runs slow each other down, unlike fake ones.
		b := &contended{Backend: backend(t, fake.Config{})}
		f, err := Run(t.Context(), Config{Spec: world(1, 1, time.Minute), Backend: b, Input: rows, Slots: 3}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range f.Points {
			if want := 1000 * float64(p.Concurrency); p.Mean != want {
				t.Errorf("concurrency %d: mean %v us, want %v", p.Concurrency, p.Mean, want)
			}
		}
	})
}

// contended is a backend on which a run takes 1 ms for every run under way when it starts.
type contended struct{ *fake.Backend }

func (c *contended) Launch(ctx context.Context, s dataplane.InstanceSpec) (dataplane.Runner, error) {
	r, err := c.Backend.Launch(ctx, s)
	return &contendedRunner{Runner: r}, err
}

type contendedRunner struct {
	dataplane.Runner
	mu      sync.Mutex
	running int
}

func (c *contendedRunner) Run(ctx context.Context, b *dataplane.Batch) error {
	c.mu.Lock()
	c.running++
	c.mu.Unlock()
	// Runs that start at the same instant must all have been counted.
	time.Sleep(time.Nanosecond)
	c.mu.Lock()
	d := time.Duration(c.running) * ms
	c.mu.Unlock()
	time.Sleep(d - time.Nanosecond)
	c.mu.Lock()
	c.running--
	c.mu.Unlock()
	return c.Runner.Run(ctx, b)
}

func TestResumesAfterCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		partial := filepath.Join(t.TempDir(), "profile.partial")
		model := filepath.Join(t.TempDir(), "model")
		if err := os.WriteFile(model, []byte("v1"), 0o600); err != nil {
			t.Fatal(err)
		}
		ran := map[string]int{}
		cfg := Config{Spec: world(2, 8, time.Second), Input: rows, Partial: partial,
			ModelFile: func(serving.VariantID) string {
				return model
			}}
		cfg.Backend = backend(t, fake.Config{Latency: func(v serving.VariantID, items int) time.Duration {
			ran[fmt.Sprintf("%c%d", 'a'+rune(v), items)]++
			return time.Duration(items) * ms
		}})
		ctx, cancel := context.WithCancel(t.Context())
		finished := map[string]bool{}
		_, err := Run(ctx, cfg, func(done, _ int, what string) {
			finished[what] = true
			if done == 3 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) || len(finished) < 3 {
			t.Fatalf("ended with %v after %d points", err, len(finished))
		}
		// A crash may leave half a line.
		f, err := os.OpenFile(partial, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = f.WriteString(`{"key":"abc","poi`)
		_ = f.Close()

		clear(ran)
		profile, err := Run(t.Context(), cfg, nil)
		if err != nil || len(profile.Points) != 8 || len(profile.Loads) != 2 {
			t.Fatalf("second run: %+v, %v", profile, err)
		}
		for what := range finished {
			var v rune
			var items, c int
			if _, err := fmt.Sscanf(what, "%c batch %d concurrency %d", &v, &items, &c); err != nil {
				t.Fatal(err)
			}
			if n := ran[fmt.Sprintf("%c%d", v, items)]; n != 0 {
				t.Errorf("%q was finished, but ran %d times more", what, n)
			}
		}
		clear(ran)
		again, err := Run(t.Context(), cfg, nil)
		if err != nil || len(ran) != 0 || !slices.Equal(again.Points, profile.Points) ||
			!slices.Equal(again.Loads, profile.Loads) {
			t.Errorf("third run measured %v, %v", ran, err)
		}
		// Another model in the same file is measured anew.
		if err := os.WriteFile(model, []byte("v2"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Run(t.Context(), cfg, nil); err != nil || len(ran) != 8 {
			t.Errorf("a changed model: %v, %v", ran, err)
		}
	})
}

func TestFailuresAreNamed(t *testing.T) {
	spec := world(1, 2, time.Second)
	for name, c := range map[string]struct {
		cfg   Config
		batch int
		want  string
	}{
		"run": {Config{Backend: backend(t, fake.Config{ErrorRate: 1}), Input: rows, Slots: 3}, 1, "on purpose"},
		"launch": {
			Config{Backend: backend(t, fake.Config{LaunchFailures: 9}), Input: rows}, 0, "was asked for",
		},
		"rows": {Config{Backend: backend(t, fake.Config{}), Input: func(serving.VariantID, int) []tensor.Tensor {
			return []tensor.Tensor{{Name: "x"}}
		}}, 1, "rows [0, 1)"},
		"tensors": {Config{Backend: backend(t, fake.Config{}),
			Tensors: func(serving.VariantID) ([]tensor.Spec, bool, error) {
				return nil, false, errors.New("no file")
			}}, 0, "no file"},
		"model": {Config{Backend: backend(t, fake.Config{}), Input: rows, ModelFile: func(serving.VariantID) string {
			return "/no/such"
		}}, 0, "/no/such"},
	} {
		c.cfg.Spec = spec
		f, err := Run(t.Context(), c.cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		x := f.Failure("a", "cpu")
		if x == nil || x.Batch != c.batch || !strings.Contains(x.Reason, c.want) || len(f.Points) > 0 {
			t.Errorf("%s: failure %+v, points %+v, want one with %d items that says %q", name, x, f.Points, c.batch,
				c.want)
		}
	}
}

func TestBadConfigurationsAreErrors(t *testing.T) {
	spec := world(1, 2, time.Second)
	for want, cfg := range map[string]Config{
		"partial":            {Input: rows, Partial: "/dev/null/x"},
		"Input or Tensors":   {},
		"variant 5":          {Input: rows, Variants: []serving.VariantID{5}},
		"twice":              {Input: rows, Variants: []serving.VariantID{0, 0}},
		"device type 3":      {Input: rows, DeviceType: 3},
		"Slots is -1":        {Input: rows, Slots: -1},
		"Spec and Backend":   {Backend: nil},
		"MaxTime is -1":      {Input: rows, MaxTime: -1},
		"LoadedVariants is ": {Input: rows, LoadedVariants: -1},
	} {
		cfg.Spec = spec
		if want != "Spec and Backend" {
			cfg.Backend = backend(t, fake.Config{})
		}
		if f, err := Run(t.Context(), cfg, nil); err == nil || f != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, %v, want an error that says %q", f, err, want)
		}
	}
}

func TestRandomInputsAreValidAndRepeatable(t *testing.T) {
	var specs []tensor.Spec
	for d := tensor.Bool; d <= tensor.Bytes; d++ {
		specs = append(specs, tensor.Spec{Name: d.String(), DType: d, Shape: []int64{-1, 3, -1}})
	}
	cfg := &Config{
		Seed: 5, Spec: world(1, 4, time.Second),
		Tensors: func(serving.VariantID) ([]tensor.Spec, bool, error) { return specs, true, nil },
	}
	src, err := newSource(cfg, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, err := src.batch(4)
	if err != nil {
		t.Fatal(err)
	}
	b, err := src.batch(4)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Portions) != 4 {
		t.Fatalf("%d parts", len(a.Portions))
	}
	for i := range a.Portions {
		for k := range a.Portions[i].Inputs {
			x, y := a.Portions[i].Inputs[k], b.Portions[i].Inputs[k]
			if err := x.Validate(); err != nil {
				t.Error(err)
			}
			if !slices.Equal(x.Shape, []int64{1, 3, 1}) || !slices.Equal(x.Data, y.Data) {
				t.Errorf("%s: %v, then %v", x.Name, x, y)
			}
		}
	}
	src.batched = false
	if one, err := src.batch(1); err != nil || len(one.Portions) != 1 || !slices.Equal(one.Portions[0].Inputs[0].Shape,
		[]int64{1, 3, 1}) {
		t.Errorf("without a batch dimension: %+v, %v", one, err)
	}
}

func TestThisHost(t *testing.T) {
	h := ThisHost("1.2")
	if h.CPU == "" || h.Cores < 1 || !strings.Contains(h.OS, "/") || h.ONNXRuntime != "1.2" {
		t.Errorf("%+v", h)
	}
}

func TestBatchesThatAreMadeWhole(t *testing.T) {
	var ran []int
	var seen sync.Mutex
	asked := map[int]bool{}
	b := backend(t, fake.Config{Latency: func(v serving.VariantID, items int) time.Duration {
		seen.Lock()
		defer seen.Unlock()
		if v == 1 {
			ran = append(ran, items)
		}
		return 0
	}})
	parts := func(_ *rand.Rand, v serving.VariantID, items int) ([]dataplane.Portion, error) {
		if v == 0 {
			return nil, nil // falls back to Input
		}
		asked[items] = true
		return []dataplane.Portion{
			{Query: 1, Items: items, Inputs: []tensor.Tensor{{Name: "beside", DType: tensor.Uint8, Shape: []int64{0}}}},
		}, nil
	}
	cfg := Config{Spec: world(2, 3, time.Second), Backend: b, Input: rows, RandomBatch: parts, MaxSamples: 10}
	f, err := Run(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Sort(ran); !slices.Equal(slices.Compact(ran), []int{1, 2, 3}) || !asked[3] || len(f.Points) != 6 {
		t.Errorf("ran %v, asked for %v, %d points", ran, asked, len(f.Points))
	}
	one, err := cfg.key(0)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Identity = func(serving.VariantID) string { return "other options" }
	if other, err := cfg.key(0); err != nil || other == one {
		t.Errorf("what it is does not count: %v", err)
	}
	cfg.RandomBatch = func(*rand.Rand, serving.VariantID, int) ([]dataplane.Portion, error) {
		return nil, errors.New("no sample")
	}
	if f, err := Run(t.Context(), cfg, nil); err != nil || len(f.Failures) != 2 ||
		!strings.Contains(f.Failures[0].Reason, "no sample") {
		t.Errorf("failures %+v, error %v", f, err)
	}
}
