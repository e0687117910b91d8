package loki

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/algo/milp"
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

const ms = time.Millisecond

// model is a variant: its accuracy, and the time of a batch as a base and a time for each item.
type model struct {
	accuracy   float64
	base, item time.Duration
}

// edge leads from one stage to another.
type edge struct {
	from, to int
	fanOut   float64
}

// pipelineOf is one app of so many stages with their variants, on workers of one type.
func pipelineOf(workers int, slo time.Duration, edges []edge, stages ...[]model) (*serving.Spec, profile.Profile) {
	spec := &serving.Spec{
		DeviceTypes: []serving.DeviceType{{Name: "d", Cores: 4}},
		Apps: []serving.App{{
			Name: "a", SLO: serving.SLO{Latency: slo, Percentile: 99}, Weight: 1, QueueLimit: 100,
		}},
		Stages: make([]serving.Stage, len(stages)),
	}
	var m serving.Measurements
	for s, models := range stages {
		st := &spec.Stages[s]
		st.Name = fmt.Sprint("s", s)
		spec.Apps[0].Stages = append(spec.Apps[0].Stages, serving.StageID(s))
		for _, x := range models {
			v := serving.VariantID(len(spec.Variants))
			st.Variants = append(st.Variants, v)
			spec.Variants = append(spec.Variants, serving.Variant{
				Name: fmt.Sprint("v", v), Stage: serving.StageID(s), Accuracy: x.accuracy, MaxBatch: 8,
			})
			for n := 1; n <= 8; n++ {
				l := x.base + time.Duration(n)*x.item
				m.Latency = append(m.Latency, serving.LatencyPoint{
					Variant: v, Items: n, Concurrency: 1, Samples: 1, Mean: l, P50: l, P90: l, P95: l, P99: l,
				})
			}
		}
	}
	for _, e := range edges {
		spec.Stages[e.from].Next = append(spec.Stages[e.from].Next, serving.Edge{
			To: serving.StageID(e.to), FanOut: e.fanOut,
		})
		spec.Stages[e.to].Joins++
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

// serversOf returns the instances of each variant.
func serversOf(p *plan.Plan, variants int) []int {
	out := make([]int, variants)
	for _, i := range p.Instances {
		out[i.Variants[0].Variant]++
	}
	return out
}

// detection has two stages. A fast detector takes 10 ms an item, an accurate one 20 ms; a fast classifier 5 ms, an
// accurate one 10 ms. Every query has two objects. Batches save nothing.
func detection(workers int) (*serving.Spec, profile.Profile) {
	return pipelineOf(workers, 200*ms, []edge{{0, 1, 2}}, []model{{0.6, 0, 10 * ms}, {0.8, 0, 20 * ms}},
		[]model{{0.5, 0, 5 * ms}, {1, 0, 10 * ms}})
}

// By hand: a query takes 20 ms of an accurate detector and 2 x 10 ms of an accurate classifier. 50 queries/s take one
// server of each; 100/s two of each. With three servers at 100/s something must give. Fast detectors serve 100/s on one
// server, at 0.6 * 1 / 0.8 = 3/4 of the accuracy, with two accurate classifiers; fast classifiers on one server halve
// it, with two accurate detectors. With two servers both are fast, and carry 100/s of 125.
func TestScalingByHand(t *testing.T) {
	for _, c := range []struct {
		workers int
		rate    float64
		want    []int // servers by variant
		shed    float64
	}{
		{8, 50, []int{0, 1, 0, 1}, 0},
		{8, 100, []int{0, 2, 0, 2}, 0},
		{4, 100, []int{0, 2, 0, 2}, 0},
		{3, 100, []int{1, 0, 0, 2}, 0},
		{2, 100, []int{1, 0, 1, 0}, 0},
		{2, 125, []int{1, 0, 1, 0}, 25},
	} {
		spec, believed := detection(c.workers)
		p := &Planner{Profile: believed, Solver: solver(t), Options: Options{Headroom: 1}}
		out, err := p.Plan(context.Background(), plan.Request{Spec: spec, Rates: []float64{c.rate}})
		if err != nil {
			t.Fatal(err)
		}
		shed := 0.0
		if out.Shed != nil {
			shed = out.Shed[0]
		}
		if got := serversOf(out, 4); !slices.Equal(got, c.want) || math.Abs(shed-c.shed) > 1 {
			t.Errorf("%d workers, %v/s: servers %v, shed %v; want %v, %v", c.workers, c.rate, got, shed, c.want, c.shed)
		}
		if err := out.Validate(spec); err != nil {
			t.Error(err)
		}
	}
}

// At 120 queries/s accurate variants would take three servers of each stage, and there are five. A fast detector costs
// a quarter of the accuracy of what it serves, a fast classifier half.
func TestAccuracyScalingMixesVariants(t *testing.T) {
	spec, believed := detection(5)
	p := &Planner{Profile: believed, Solver: solver(t), Options: Options{Headroom: 1}}
	out, err := p.Plan(context.Background(), plan.Request{Spec: spec, Rates: []float64{120}})
	if err != nil {
		t.Fatal(err)
	}
	// Three accurate classifiers carry 150/s. Of two detectors one is accurate and carries 50/s, the fast one the other
	// 70: (50 * 0.8 + 70 * 0.6) / 120.
	if got := serversOf(out, 4); !slices.Equal(got, []int{1, 1, 0, 3}) {
		t.Fatalf("servers %v", got)
	}
	if want := (50*0.8 + 70*0.6) / 120; math.Abs(out.Forecast.Accuracy-want) > 1e-6 {
		t.Errorf("accuracy %v, want %v", out.Forecast.Accuracy, want)
	}
	for _, i := range out.Instances {
		want := map[serving.VariantID]float64{0: 70. / 120, 1: 50. / 120}[i.Variants[0].Variant]
		if i.Stage == 0 && math.Abs(i.Share-want) > 1e-6 {
			t.Errorf("variant %d gets %v, want %v: the most accurate is filled first", i.Variants[0].Variant, i.Share,
				want)
		}
	}
}

// The batches of a path take at most half of the objective, and budgets divide the whole of it in their proportion.
func TestHalfOfTheObjectiveIsForQueues(t *testing.T) {
	// Batches of b take 10 + b ms at both stages. 36 ms are half of the objective: 8 and 8 items do just that.
	for _, c := range []struct {
		slo    time.Duration
		batch  []int
		budget time.Duration // of the first stage
	}{
		{72 * ms, []int{8, 8}, 36 * ms}, {71 * ms, []int{8, 4}, 0}, {44 * ms, []int{1, 1}, 22 * ms},
	} {
		spec, believed := pipelineOf(9, c.slo, []edge{{0, 1, 1}}, []model{{0.9, 10 * ms, 1 * ms}},
			[]model{{0.9, 10 * ms, 1 * ms}})
		p := &Planner{Profile: believed, Solver: solver(t), Options: Options{Headroom: 1}}
		out, err := p.Plan(context.Background(), plan.Request{Spec: spec, Rates: []float64{440}})
		if err != nil {
			t.Fatal(err)
		}
		largest := []int{0, 0}
		for _, i := range out.Instances {
			largest[i.Stage] = max(largest[i.Stage], i.Variants[0].Limit)
		}
		slices.Sort(largest)
		want := slices.Clone(c.batch)
		slices.Sort(want)
		if !slices.Equal(largest, want) {
			t.Errorf("%v: batches %v, want %v", c.slo, largest, want)
		}
		if c.budget > 0 && out.Budgets[0] != c.budget {
			t.Errorf("%v: budgets %v, want %v", c.slo, out.Budgets, c.budget)
		}
	}
	spec, believed := pipelineOf(9, 43*ms, []edge{{0, 1, 1}}, []model{{0.9, 10 * ms, ms}}, []model{{0.9, 10 * ms, ms}})
	if _, err := (&Planner{Profile: believed, Solver: solver(t)}).Plan(context.Background(),
		plan.Request{Spec: spec}); err == nil {
		t.Error("two batches of 11 ms were planned within 21.5")
	}
}

// Hardware scaling takes as few servers as trying every pair of batch sizes finds.
func TestHardwareScalingAgainstBruteForce(t *testing.T) {
	s := solver(t)
	for seed := range uint64(15) {
		rng := rand.New(rand.NewPCG(seed, 9))
		stages := make([][]model, 2)
		for k := range stages {
			for v := range 1 + rng.IntN(3) {
				stages[k] = append(stages[k], model{0.5 + float64(v)/10, time.Duration(1+rng.IntN(15)) * ms,
					time.Duration(1+rng.IntN(5)) * ms})
			}
		}
		slo, fan, rate := time.Duration(100+rng.IntN(100))*ms, 1+2*rng.Float64(), 20+100*rng.Float64()
		spec, believed := pipelineOf(60, slo, []edge{{0, 1, fan}}, stages...)
		out, err := (&Planner{Profile: believed, Solver: s, Options: Options{Headroom: 1}}).Plan(context.Background(),
			plan.Request{Spec: spec, Rates: []float64{rate}})
		if err != nil {
			t.Fatal(err)
		}
		least := math.MaxInt
		servers := func(m model, b int, rate float64) (time.Duration, int) {
			run := m.base + time.Duration(b)*m.item
			return run, int(math.Ceil(rate * run.Seconds() / float64(b)))
		}
		for _, a := range []int{1, 2, 4, 8} {
			for _, b := range []int{1, 2, 4, 8} {
				x, n := servers(stages[0][len(stages[0])-1], a, rate)
				y, k := servers(stages[1][len(stages[1])-1], b, rate*fan)
				if x+y <= slo/2 {
					least = min(least, n+k)
				}
			}
		}
		// Servers of one variant may differ in batch size here, which can only help.
		if len(out.Instances) > least {
			t.Errorf("seed %d: %d servers, %d suffice", seed, len(out.Instances), least)
		}
		for _, i := range out.Instances {
			if v := spec.Variants[i.Variants[0].Variant]; v.Accuracy < spec.BestOfStage(i.Stage) {
				t.Errorf("seed %d: %s is not the most accurate", seed, v.Name)
			}
		}
	}
}

// A pipeline that branches: both branches go through the same detectors, in the same shares.
func TestBranches(t *testing.T) {
	spec, believed := pipelineOf(6, 300*ms, []edge{{0, 1, 1}, {0, 2, 2}}, []model{{0.6, 0, 10 * ms}, {0.8, 0, 20 * ms}},
		[]model{{0.5, 0, 5 * ms}, {1, 0, 10 * ms}}, []model{{0.9, 0, 5 * ms}})
	p := &Planner{Profile: believed, Solver: solver(t), Options: Options{Headroom: 1}}
	// 100/s take two detectors, one classifier and one of the other branch.
	out, err := p.Plan(context.Background(), plan.Request{Spec: spec, Rates: []float64{100}})
	if err != nil {
		t.Fatal(err)
	}
	if got := serversOf(out, 5); !slices.Equal(got, []int{0, 2, 0, 1, 1}) {
		t.Errorf("servers %v", got)
	}
	joined, believed := pipelineOf(6, 300*ms, []edge{{0, 1, 1}, {0, 2, 1}, {1, 2, 1}}, []model{{0.6, 0, ms}},
		[]model{{0.5, 0, ms}}, []model{{0.9, 0, ms}})
	if _, err := (&Planner{Profile: believed, Solver: solver(t)}).Plan(context.Background(),
		plan.Request{Spec: joined}); err == nil || !strings.Contains(err.Error(), "plans trees") {
		t.Errorf("a join: %v", err)
	}
}

// Three stages on two workers: one shares.
func TestMoreStagesThanWorkers(t *testing.T) {
	one := []model{{0.9, 0, 5 * ms}}
	spec, believed := pipelineOf(2, 300*ms, []edge{{0, 1, 1}, {1, 2, 1}}, one, one, one)
	out, err := (&Planner{Profile: believed, Solver: solver(t)}).Plan(context.Background(),
		plan.Request{Spec: spec, Rates: []float64{10}})
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Validate(spec); err != nil || len(out.Instances) != 3 {
		t.Errorf("%d instances, sharing %v: %v", len(out.Instances), out.Sharing, err)
	}
}
