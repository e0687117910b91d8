package ipa

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/milp"
	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/internal/runtime/highs"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

func solver(t *testing.T) milp.Solver {
	t.Helper()
	s, err := highs.New(highs.Options{CacheDir: highs.DefaultCacheDir()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// linear is the latency of a variant: a base and a time for each item.
type linear struct{ base, item time.Duration }

// chain is one app of a chain of stages, with the given variants each, on workers of one type. The k-th variant of a
// stage has accuracy 0.5 + k/10.
func chain(workers int, slo time.Duration, fanOut float64, stages ...[]linear) (*serving.Spec, profile.Profile) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d", Cores: 4}},
		Apps: []serving.App{{
			Name: "a", SLO: serving.SLO{Latency: slo, Percentile: 99}, Weight: 1, QueueLimit: 100,
		}},
	}
	var m serving.Measurements
	for s, variants := range stages {
		st := serving.Stage{Name: fmt.Sprint("s", s)}
		if s+1 < len(stages) {
			st.Next = []serving.Edge{{To: serving.StageID(s + 1), FanOut: fanOut}}
		}
		st.Joins = min(s, 1)
		spec.Apps[0].Stages = append(spec.Apps[0].Stages, serving.StageID(s))
		for k, l := range variants {
			v := serving.VariantID(len(spec.Variants))
			st.Variants = append(st.Variants, v)
			spec.Variants = append(spec.Variants, serving.Variant{
				Name: fmt.Sprint("v", s, k), Stage: serving.StageID(s), Accuracy: 0.5 + float64(k)/10, MaxBatch: 8,
			})
			for n := 1; n <= 8; n++ {
				x := l.base + time.Duration(n)*l.item
				m.Latency = append(m.Latency, serving.LatencyPoint{
					Variant: v, Items: n, Concurrency: 1, Samples: 1, Mean: x, P50: x, P90: x, P95: x, P99: x,
				})
			}
		}
		spec.Stages = append(spec.Stages, st)
	}
	for w := range workers {
		spec.Workers = append(spec.Workers, serving.Worker{Name: fmt.Sprint("w", w)})
	}
	table, err := profile.NewTable(spec, m, profile.P95)
	if err != nil {
		panic(err)
	}
	return spec, table
}

const ms = time.Millisecond

// By hand: stage 0 has a variant of 10 ms an item and one of 40 ms, stage 1 one of 20 ms. At 100 queries/s a worker
// with the fast variant does 100/s, four with the slow one do 100/s, and stage 1 takes two workers. A full batch of b
// waits (b-1)/100 s to fill, and batching saves nothing. Rank 1 of the slow variant is worth 10, its three workers more
// cost 1.5, so it is chosen wherever there are six workers.
func TestAccuracyAgainstCostByHand(t *testing.T) {
	for _, c := range []struct {
		workers int
		weights Options
		want    []int // workers by variant
		shed    float64
	}{
		{6, Options{}, []int{0, 4, 2}, 0},
		{5, Options{}, []int{1, 0, 2}, 0},
		{6, Options{Accuracy: 1, Cost: 1}, []int{1, 0, 2}, 0}, // one rank is not worth three workers
		{2, Options{}, []int{1, 0, 1}, 50},                    // half of the demand fits
	} {
		spec, believed := chain(c.workers, 300*ms, 1, []linear{{0, 10 * ms}, {0, 40 * ms}}, []linear{{0, 20 * ms}})
		p := &Planner{Profile: believed, Solver: solver(t), Options: c.weights}
		out, err := p.Plan(context.Background(), plan.Request{Spec: spec, Rates: []float64{100}})
		if err != nil {
			t.Fatal(err)
		}
		got := make([]int, 3)
		for _, i := range out.Instances {
			got[i.Variants[0].Variant]++
			if i.Variants[0].Limit != 1 {
				t.Errorf("%d workers: batches of %d save nothing and wait", c.workers, i.Variants[0].Limit)
			}
		}
		shed := 0.0
		if out.Shed != nil {
			shed = out.Shed[0]
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) || math.Abs(shed-c.shed) > 1 {
			t.Errorf("%d workers, %+v: %v, shed %v; want %v, %v", c.workers, c.weights, got, shed, c.want, c.shed)
		}
	}
}

// The wait (b-1)/rate counts: a batch of 4 takes 40 ms where one item takes 25, so that it would save two of the three
// workers, but at 100 queries/s it fills within 30 ms, and 70 ms must be allowed.
func TestTheWaitForABatchCounts(t *testing.T) {
	for _, c := range []struct {
		slo     time.Duration
		workers int
		batch   int
	}{
		{71 * ms, 1, 4}, {69 * ms, 2, 2}, {39 * ms, 3, 1},
	} {
		spec, believed := chain(4, c.slo, 1, []linear{{20 * ms, 5 * ms}})
		out, err := (&Planner{Profile: believed, Solver: solver(t)}).Plan(context.Background(),
			plan.Request{Spec: spec, Rates: []float64{100}})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Instances) != c.workers || out.Instances[0].Variants[0].Limit != c.batch {
			t.Errorf("%v: %d workers with batches of %d, want %d of %d", c.slo, len(out.Instances),
				out.Instances[0].Variants[0].Limit, c.workers, c.batch)
		}
	}
}

// The program finds what trying every variant and batch size of every stage finds.
func TestAgainstBruteForce(t *testing.T) {
	s, some := solver(t), 0
	for seed := range uint64(25) {
		rng := rand.New(rand.NewPCG(seed, 7))
		stages := make([][]linear, 1+rng.IntN(2))
		for k := range stages {
			for range 1 + rng.IntN(3) {
				stages[k] = append(stages[k], linear{
					time.Duration(1+rng.IntN(20)) * ms, time.Duration(1+rng.IntN(10)) * ms,
				})
			}
		}
		spec, believed := chain(2+rng.IntN(8), time.Duration(60+rng.IntN(200))*ms, 1+rng.Float64(), stages...)
		r := plan.Request{Spec: spec, Rates: []float64{20 + 200*rng.Float64()}}
		x, err := (&Planner{Profile: believed, Solver: s}).read(&r)
		if err != nil {
			continue
		}
		got, err := x.solve(context.Background(), 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		best := math.Inf(-1)
		var try func(s serving.StageID, worth, takes float64, workers int)
		try = func(s serving.StageID, worth, takes float64, workers int) {
			if int(s) == len(spec.Stages) {
				if takes <= spec.Apps[0].SLO.Latency.Seconds()+1e-9 && workers <= len(spec.Workers) {
					best = max(best, worth)
				}
				return
			}
			for k := range x.offers {
				if f := &x.offers[k]; f.Stage == s {
					n := int(math.Ceil(x.items[s] / f.Rate))
					try(s+1, worth+10*x.rank[f.Variant]-0.5*float64(n)-1e-6*float64(f.Batch),
						takes+f.Run.Seconds()+float64(f.Batch-1)/x.items[s], workers+n)
				}
			}
		}
		try(0, 0, 0, 0)
		if got == nil {
			if !math.IsInf(best, -1) {
				t.Errorf("seed %d: nothing found, there is %v", seed, best)
			}
			continue
		}
		some++
		worth := 0.0
		for s := range spec.Stages {
			f := x.chosen(got, serving.StageID(s))
			worth += 10*x.rank[f.Variant] - 0.5*float64(x.replicas(f, 1)) - 1e-6*float64(f.Batch)
		}
		if worth < best-gap*math.Abs(best)-1e-6 || worth > best+1e-6 {
			t.Errorf("seed %d: worth %v, want %v", seed, worth, best)
		}
	}
	if some < 10 {
		t.Errorf("only %d worlds could be served", some)
	}
}

// Three apps on two workers: the one that finds no worker shares one.
func TestMoreStagesThanWorkers(t *testing.T) {
	spec, believed := chain(2, 300*ms, 1, []linear{{0, 10 * ms}}, []linear{{0, 10 * ms}}, []linear{{0, 10 * ms}})
	out, err := (&Planner{Profile: believed, Solver: solver(t)}).Plan(context.Background(),
		plan.Request{Spec: spec, Rates: []float64{10}})
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Validate(spec); err != nil || len(out.Sharing) != 1 || len(out.Instances) != 3 {
		t.Errorf("%d instances, sharing %v: %v", len(out.Instances), out.Sharing, err)
	}
	if d := capacity.Offers(&plan.Request{Spec: spec}, believed, [][]serving.WorkerID{{0, 1}},
		make([]bool, 3), capacity.PowersOfTwo, 1); len(d) != 12 {
		t.Errorf("%d offers, want batches of 1, 2, 4 and 8 of three variants", len(d))
	}
}
