package bound

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/highstest"
	"github.com/sluice-serving/sluice/serving"
)

const ms = time.Millisecond

var solver = highstest.Solver

// world is machines by type with apps of one stage each, whose variants take base + items*each on every type, times the
// type's factor.
type world struct {
	machines []int
	factor   []float64
	spec     serving.Spec
	base     []time.Duration
	each     []time.Duration
}

func (w *world) app(slo time.Duration, weight float64) serving.AppID {
	a, s := serving.AppID(len(w.spec.Apps)), serving.StageID(len(w.spec.Stages))
	w.spec.Apps = append(w.spec.Apps, serving.App{
		SLO: serving.SLO{Latency: slo}, Weight: weight, Stages: []serving.StageID{s},
	})
	w.spec.Stages = append(w.spec.Stages, serving.Stage{App: a})
	return a
}

// stage adds a stage behind the last one of an app.
func (w *world) stage(a serving.AppID) {
	s := serving.StageID(len(w.spec.Stages))
	w.spec.Stages = append(w.spec.Stages, serving.Stage{App: a})
	w.spec.Apps[a].Stages = append(w.spec.Apps[a].Stages, s)
}

func (w *world) variant(base, each time.Duration, accuracy float64, most int, memory int64) serving.VariantID {
	s := len(w.spec.Stages) - 1
	v := serving.VariantID(len(w.spec.Variants))
	w.spec.Variants = append(w.spec.Variants, serving.Variant{
		Stage: serving.StageID(s), Accuracy: accuracy, MaxBatch: most, MemoryBytes: memory,
	})
	w.spec.Stages[s].Variants = append(w.spec.Stages[s].Variants, v)
	w.base, w.each = append(w.base, base), append(w.each, each)
	return v
}

func (w *world) world() Model {
	spec := w.spec
	for d, n := range w.machines {
		if d >= len(spec.DeviceTypes) {
			spec.DeviceTypes = append(spec.DeviceTypes, serving.DeviceType{Cores: 1})
		}
		for range n {
			spec.Workers = append(spec.Workers, serving.Worker{DeviceType: serving.DeviceTypeID(d)})
		}
	}
	timeOf := func(v serving.VariantID, d serving.DeviceTypeID, items, n int) (time.Duration, bool) {
		f := 1.0
		if int(d) < len(w.factor) {
			f = w.factor[d]
		}
		return time.Duration(f * float64(w.base[v]+time.Duration(items)*w.each[v]) * float64(n)), true
	}
	return Model{Spec: &spec, Time: timeOf}
}

// steady returns queries at an even rate.
func steady(a serving.AppID, rate float64, span, slo time.Duration, items ...float64) (out []Query) {
	for k := range int(rate * span.Seconds()) {
		at := serving.Time((float64(k) + 0.5) / rate * 1e9)
		out = append(out, Query{
			App: a, Arrived: at, Deadline: at.Add(slo), Items: items, Variant: serving.None,
		})
	}
	return out
}

func check(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// One machine, two apps whose queries take 10 ms each, 90 queries/s of each: 100 of 180 can be in time. Time after the
// last arrival is counted, so that the bound is a little higher.
func TestOneMachineTwoApps(t *testing.T) {
	w := world{machines: []int{1}}
	var queries []Query
	for range 2 {
		a := w.app(100*ms, 1)
		w.variant(10*ms, 0, 0.9, 1, 0)
		queries = append(queries, steady(a, 90, 30*time.Second, 100*ms, 1)...)
	}
	r, err := Utility(context.Background(), solver(t), w.world(), queries, Options{})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "utility", r.Utility, 100.0/180*(30.1/30), 1e-3)
	check(t, "in time", r.InTime, 100.0/180*(30.1/30), 1e-3)
}

// Half of the time a machine has more than it can do, half of the time nothing: only what is still in time may be
// served in the other half.
func TestWindows(t *testing.T) {
	w := world{machines: []int{1}}
	a := w.app(time.Second, 1)
	w.variant(10*ms, 0, 1, 1, 0)
	queries := steady(a, 200, 10*time.Second, time.Second, 1)
	last := queries[len(queries)-1]
	last.Arrived, last.Deadline = 20e9-1, 21e9
	queries = append(queries, last)
	r, err := Utility(context.Background(), solver(t), w.world(), queries, Options{Windows: 21})
	if err != nil {
		t.Fatal(err)
	}
	// 1,000 in ten seconds and at most 100 in the second after, of 2,000.
	check(t, "utility", r.Utility, 1101.0/2001, 0.06)
	one, err := Utility(context.Background(), solver(t), w.world(), queries, Options{Windows: 1})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "utility of one window", one.Utility, 1, 1e-9)
}

// With two variants, machine time is split so that everything is served at the highest mean accuracy: 100/s at 10 ms
// and accuracy 1, or 400/s at 2.5 ms and accuracy 0.8; at 200/s, x of the first with 10x + 2.5(200 - x) = 1000.
func TestVariants(t *testing.T) {
	w := world{machines: []int{1}}
	a := w.app(time.Second, 1)
	w.variant(10*ms, 0, 1, 1, 0)
	w.variant(2500*time.Microsecond, 0, 0.8, 1, 0)
	r, err := Utility(context.Background(), solver(t), w.world(), steady(a, 200, 100*time.Second, 10*ms, 1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	x := 500.0 / 7.5
	check(t, "utility", r.Utility, (x+0.8*(200-x))/200, 1e-3)
	// A floor forbids the second.
	w.spec.Apps[a].Floor = 0.9
	r, err = Utility(context.Background(), solver(t), w.world(), steady(a, 200, 100*time.Second, 10*ms, 1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "utility with a floor", r.Utility, 0.5, 1e-3)
	// A client that names the variant has its way.
	pinned := steady(a, 200, 100*time.Second, 10*ms, 1)
	for i := range pinned {
		pinned[i].Variant = 1
	}
	r, err = Utility(context.Background(), solver(t), w.world(), pinned, Options{})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "utility of what is pinned", r.Utility, 0.8, 1e-3)
}

// Batches: 10 ms + 1 ms an item within 20 ms are batches of 10, 500/s.
func TestBatches(t *testing.T) {
	w := world{machines: []int{2}}
	a := w.app(20*ms, 1)
	w.variant(10*ms, ms, 1, 64, 0)
	r, err := Utility(context.Background(), solver(t), w.world(), steady(a, 2000, 10*time.Second, 20*ms, 1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "utility", r.Utility, 0.5, 2e-3)
	// Two batches at once that take as long as one alone give twice as much.
	x := w.world()
	inner := x.Time
	x.Time = func(v serving.VariantID, d serving.DeviceTypeID, items, n int) (time.Duration, bool) {
		mean, ok := inner(v, d, items, n)
		if n <= 2 {
			mean /= time.Duration(n)
		}
		return mean, ok
	}
	x.Levels = func(serving.VariantID, serving.DeviceTypeID) int { return 3 }
	r, err = Utility(context.Background(), solver(t), x, steady(a, 2000, 10*time.Second, 20*ms, 1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "utility of two at once", r.Utility, 1, 2e-3)
	x.Speed = []float64{0.5}
	r, err = Utility(context.Background(), solver(t), x, steady(a, 2000, 10*time.Second, 20*ms, 1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "utility at half the speed", r.Utility, 0.5, 2e-3)
}

// A large query is in time on the fast machine only.
func TestSizes(t *testing.T) {
	w := world{machines: []int{1, 1}, factor: []float64{1, 4}}
	a := w.app(100*ms, 1)
	w.variant(0, ms, 1, 100, 0)
	span := 100 * time.Second
	// 20/s of 50 items fill the fast one; small ones have 1000/4 items/s on the slow one.
	queries := append(steady(a, 20, span, 100*ms, 50), steady(a, 400, span, 100*ms, 1)...)
	r, err := Utility(context.Background(), solver(t), w.world(), queries, Options{Classes: 2})
	if err != nil {
		t.Fatal(err)
	}
	// Small ones are worth as much as large ones and take less: 400/s of them fit on both machines, and leave 850 ms
	// of the fast one, for 17/s of the large.
	check(t, "utility", r.Utility, (400+17)/420.0, 2e-3)
}

// A graph: each query brings two items to the second stage; both stages share the machine.
func TestGraph(t *testing.T) {
	w := world{machines: []int{1}}
	a := w.app(time.Second, 1)
	w.variant(4*ms, 0, 0.9, 1, 0)
	w.stage(a)
	w.variant(3*ms, 0, 0.8, 1, 0)
	w.variant(500*time.Microsecond, 0, 0.4, 1, 0)
	const span = 100 * time.Second
	r, err := Utility(context.Background(), solver(t), w.world(), steady(a, 100, span, 10*ms, 1, 2), Options{})
	if err != nil {
		t.Fatal(err)
	}
	// All at full accuracy take 1 s a second for 100/s: just everything.
	check(t, "utility", r.Utility, 1, 1e-9)
	r, err = Utility(context.Background(), solver(t), w.world(), steady(a, 200, span, 10*ms, 1, 2), Options{})
	if err != nil {
		t.Fatal(err)
	}
	// 200/s: 5 ms each with the small one: all 200 at half the accuracy, or 100 at all of it: any mixture is 0.5.
	check(t, "utility at twice the load", r.Utility, 0.5, 1e-3)
}

// Memory: machines that hold one of two variants give each half of the machines.
func TestMemory(t *testing.T) {
	w := world{machines: []int{2}}
	w.spec.DeviceTypes = []serving.DeviceType{{Cores: 1, MemoryBytes: 100 << 20}}
	var queries []Query
	for range 4 {
		a := w.app(100*ms, 1)
		w.variant(10*ms, 0, 1, 1, 100<<20)
		if a < 3 {
			queries = append(queries, steady(a, 40, 100*time.Second, 100*ms, 1)...)
		}
	}
	r, err := Utility(context.Background(), solver(t), w.world(), queries, Options{})
	if err != nil {
		t.Fatal(err)
	}
	// In the fluid limit variants may take turns: 120 of 120/s.
	check(t, "utility", r.Utility, 1, 1e-3)
	w.spec.Variants[0].MemoryBytes = 101 << 20
	r, err = Utility(context.Background(), solver(t), w.world(), queries, Options{})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "utility without the one that fits nowhere", r.Utility, 2.0/3, 1e-3)
}

// Parts: a machine of four threads is cut into parts of one, each a third as fast as the whole.
func TestParts(t *testing.T) {
	w := world{machines: []int{1}, factor: []float64{1, 3}}
	w.spec.DeviceTypes = []serving.DeviceType{{Cores: 4}, {Cores: 1, Part: true}}
	a := w.app(100*ms, 1)
	w.variant(10*ms, 0, 1, 1, 0)
	r, err := Utility(context.Background(), solver(t), w.world(), steady(a, 200, 100*time.Second, 100*ms, 1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "utility", r.Utility, 4.0/3*100/200, 1e-3)
}

// Rented machines: 100/s on one costs its price; the cheaper type does it for less per query until there are none left.
func TestCost(t *testing.T) {
	w := world{machines: []int{10, 3}, factor: []float64{1, 2}}
	w.spec.DeviceTypes = []serving.DeviceType{{Cores: 1, PricePerHour: 3}, {Cores: 1, PricePerHour: 1}}
	a := w.app(100*ms, 1)
	w.variant(10*ms, 0, 1, 1, 0)
	w.variant(5*ms, 0, 0.5, 1, 0)
	span := 1000 * time.Second
	queries := steady(a, 200, span, 100*ms, 1)
	r := Rent{Rented: []bool{true, true}, Target: []float64{1}}
	got, err := Cost(context.Background(), solver(t), w.world(), queries, r, Options{})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "cost", got, 3*1+0.5*3, 0.01) // three cheap ones do 150/s
	r.Target[0] = 0.75
	got, err = Cost(context.Background(), solver(t), w.world(), queries, r, Options{})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "cost at a lower target", got, 3, 0.01) // 7.5 ms a query on average: 1.5 of the fast, 3 of the cheap
	r.Late = 0.5
	got, err = Cost(context.Background(), solver(t), w.world(), queries, r, Options{})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "cost of half of them", got, 1.5, 0.01)
	if _, err := Cost(context.Background(), solver(t), w.world(), steady(a, 5000, 10*time.Second, 100*ms, 1), r,
		Options{}); !errors.Is(err, ErrTooLittle) {
		t.Errorf("%v, want %v", err, ErrTooLittle)
	}
}

// A steady load as one query that stands for many: 100/s at 10 ms on one machine are half of 200/s.
func TestSteadyLoad(t *testing.T) {
	w := world{machines: []int{1}}
	a := w.app(100*ms, 1)
	w.variant(10*ms, 0, 1, 1, 0)
	many := []Query{{App: a, Deadline: serving.Time(100 * ms), Items: []float64{1}, Variant: serving.None, Count: 20}}
	r, err := Utility(context.Background(), solver(t), w.world(), many, Options{})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "utility", r.Utility, 0.5, 1e-6)
	check(t, "in time", r.InTime, 0.5, 1e-6)
}

// A program of few terms is coarser, and a bound that is not lower.
func TestCoarserIsHigher(t *testing.T) {
	w := world{machines: []int{1}}
	a := w.app(time.Second, 1)
	w.variant(10*ms, 0, 1, 1, 0)
	queries := steady(a, 200, 10*time.Second, time.Second, 1)
	late := queries[len(queries)-1]
	late.Arrived, late.Deadline = 30e9, 31e9
	queries = append(queries, late)
	last := 0.0
	for _, terms := range []int{0, 100, 20, 8} {
		r, err := Utility(context.Background(), solver(t), w.world(), queries, Options{Terms: terms})
		if err != nil {
			t.Fatal(err)
		}
		if r.Utility < last-1e-6 {
			t.Errorf("%d terms: %v, more of them %v", terms, r.Utility, last)
		}
		last = r.Utility
	}
	if _, err := Utility(context.Background(), solver(t), w.world(), queries, Options{Terms: 1}); !errors.Is(err,
		ErrTooLarge) {
		t.Errorf("%v, want %v", err, ErrTooLarge)
	}
}

// No queries: nothing to say, and no error.
func TestNothing(t *testing.T) {
	w := world{machines: []int{1}}
	w.app(100*ms, 1)
	w.variant(10*ms, 0, 1, 1, 0)
	if r, err := Utility(context.Background(), solver(t), w.world(), nil, Options{}); err != nil || r.Utility != 0 {
		t.Errorf("%v, %v", r, err)
	}
}
