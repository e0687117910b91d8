package static

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// crowd is a world of apps of one stage, proposed everywhere.
type crowd struct {
	spec    *serving.Spec
	latency map[[2]int]time.Duration // of one item, by variant and device type; each item as long again
}

func (c *crowd) Latency(v serving.VariantID, d serving.DeviceTypeID, items, _ int) time.Duration {
	if l, ok := c.latency[[2]int{int(v), int(d)}]; ok {
		return l * time.Duration(items)
	}
	return profile.Unknown
}
func (c *crowd) Load(serving.VariantID, serving.DeviceTypeID) time.Duration { return 0 }
func (c *crowd) Learner() profile.Learner                                   { return nil }

// model is a variant: its accuracy, the latency of an item in ms on the first device type, and its bytes.
type model struct {
	accuracy float64
	ms       int
	bytes    int64
}

// newCrowd makes a world with machines[d] workers of each type, with so much memory, and so many times slower than the
// first.
func newCrowd(machines []int, memory []int64, apps ...[]model) *crowd {
	c := &crowd{spec: &serving.Spec{}, latency: make(map[[2]int]time.Duration)}
	s := c.spec
	for d, n := range machines {
		s.DeviceTypes = append(s.DeviceTypes, serving.DeviceType{
			Name: fmt.Sprintf("d%d", d), Cores: 1, MemoryBytes: memory[d],
		})
		for range n {
			s.Workers = append(s.Workers, serving.Worker{
				Name: fmt.Sprintf("w%d", len(s.Workers)), DeviceType: serving.DeviceTypeID(d),
			})
		}
	}
	for a, list := range apps {
		var variants []serving.Variant
		for k, m := range list {
			v := len(s.Variants) + k
			variants = append(variants, serving.Variant{
				Name: fmt.Sprintf("v%d", v), Accuracy: m.accuracy, MaxBatch: 4, MemoryBytes: m.bytes,
			})
			for d := range machines {
				c.latency[[2]int{v, d}] = time.Duration(m.ms*(d+1)) * time.Millisecond
			}
		}
		id := serving.StageID(len(s.Stages))
		stage := serving.Stage{Name: fmt.Sprintf("app%d", a), App: serving.AppID(a)}
		for k := range variants {
			variants[k].Stage = id
			stage.Variants = append(stage.Variants, serving.VariantID(len(s.Variants)+k))
		}
		s.Variants, s.Stages = append(s.Variants, variants...), append(s.Stages, stage)
		s.Apps = append(s.Apps, serving.App{
			Name: stage.Name, Weight: 1, QueueLimit: 1, Stages: []serving.StageID{id},
			SLO: serving.SLO{Latency: 100 * time.Millisecond, Percentile: 99},
		})
	}
	return c
}

// planner proposes every stage on every worker.
func (c *crowd) planner() *Planner {
	p := &Planner{Profile: c, Proposed: true}
	for w := range c.spec.Workers {
		for s := range c.spec.Stages {
			p.Instances = append(p.Instances, Instance{
				Worker: serving.WorkerID(w), Stage: serving.StageID(s), Variants: c.spec.Stages[s].Variants,
			})
		}
	}
	return p
}

func (c *crowd) plan(t *testing.T, rates ...float64) (*plan.Plan, error) {
	t.Helper()
	if err := c.spec.Validate(); err != nil {
		t.Fatal(err)
	}
	return c.planner().Plan(t.Context(), plan.Request{Spec: c.spec, Rates: rates})
}

// shown is what a plan loads, by worker.
func shown(c *crowd, p *plan.Plan) (out string) {
	for _, i := range p.Instances {
		out += " " + c.spec.Workers[i.Worker].Name + ":"
		for _, v := range i.Variants {
			out += c.spec.Variants[v.Variant].Name
		}
	}
	return strings.TrimSpace(out)
}

// Memory is filled fairly, and only with what is fast enough.
func TestProposedPlacementsLoadWhatRuns(t *testing.T) {
	for _, x := range []struct {
		name  string
		c     *crowd
		rates []float64
		floor float64 // of the first app
		want  string
	}{
		{
			"all fits", newCrowd([]int{2}, []int64{0}, []model{{0.9, 10, 50}, {0.8, 5, 50}}), nil, 0, "w0:v0v1 w1:v0v1",
		},
		{
			"a variant that is too slow for the second type is not placed there",
			newCrowd([]int{1, 1}, []int64{0, 0}, []model{{0.9, 80, 50}, {0.8, 5, 50}}), nil, 0, "w0:v0v1 w1:v1",
		},
		{
			"a variant that is too large for the second type is not placed there",
			newCrowd([]int{1, 1}, []int64{100, 60}, []model{{0.9, 10, 50}, {0.8, 5, 20}, {0.95, 20, 30}}), nil, 0,
			"w0:v0v1v2 w1:v1v2",
		},
		{
			"every app gets one variant before any gets a second", newCrowd([]int{1}, []int64{100},
				[]model{{0.9, 10, 50}, {0.8, 5, 40}}, []model{{0.9, 10, 60}, {0.8, 5, 10}}), nil, 0, "w0:v0v1 w0:v3",
		},
		{
			"the first variant serves most of the demand", newCrowd([]int{1}, []int64{60},
				[]model{{0.9, 10, 50}, {0.8, 5, 50}}), []float64{150}, 0, "w0:v1",
		},
		{
			"of those that serve it all the most accurate", newCrowd([]int{1}, []int64{60},
				[]model{{0.9, 10, 50}, {0.8, 5, 50}}), []float64{80}, 0, "w0:v0",
		},
		{
			"within the floor", newCrowd([]int{1}, []int64{60},
				[]model{{0.9, 10, 50}, {0.8, 5, 50}}), []float64{150}, 0.85, "w0:v0",
		},
		{
			"what is below the floor comes last", newCrowd([]int{1}, []int64{0},
				[]model{{0.8, 5, 50}, {0.9, 10, 50}}), nil, 0.85, "w0:v1v0",
		},
		{
			"copies for the demand come before accuracy", newCrowd([]int{2}, []int64{100, 100},
				[]model{{0.9, 10, 60}, {0.8, 5, 40}}, []model{{0.9, 10, 60}}), []float64{350, 1}, 0,
			"w0:v1 w0:v2 w1:v0v1",
		},
	} {
		x.c.spec.Apps[0].Floor = x.floor
		p, err := x.c.plan(t, x.rates...)
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
		} else if got := shown(x.c, p); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
}

// A world is refused when some app can be served nowhere. The message names the app, what is missing, and the least
// change that mends it; with that change there is a plan.
func TestRefusalsNameTheLeastChange(t *testing.T) {
	for _, x := range []struct {
		c    *crowd
		want []string
		mend func(s *serving.Spec)
	}{
		{
			newCrowd([]int{1, 1}, []int64{0, 0}, []model{{0.9, 10, 1}}, []model{{0.9, 160, 1}, {0.8, 120, 1}}),
			[]string{`app "app1"`, `"v2" on "d0" takes 120ms`, "slo.latency of 120ms", "(now 100ms)"},
			func(s *serving.Spec) { s.Apps[1].SLO.Latency = 120 * time.Millisecond },
		},
		{
			newCrowd([]int{1}, []int64{0}, []model{{0.9, 160, 1}, {0.8, 10, 1}}),
			[]string{`app "app0"`, "accuracy_floor of 0.8", "(now 0.85)"},
			func(s *serving.Spec) { s.Apps[0].Floor = 0.8 },
		},
		{
			newCrowd([]int{1}, []int64{3 << 20}, []model{{0.9, 10, 4 << 20}, {0.8, 10, 5 << 20}}),
			[]string{`app "app0"`, `memory of 4MiB for device type "d0" (now 3MiB)`},
			func(s *serving.Spec) { s.DeviceTypes[0].MemoryBytes = 4 << 20 },
		},
		{
			newCrowd([]int{1}, []int64{100}, []model{{0.9, 10, 70}}, []model{{0.9, 10, 60}}),
			[]string{`app "app1"`, "needs 60 bytes, and 30 are left", `memory of 130 bytes for device type "d0"`},
			func(s *serving.Spec) { s.DeviceTypes[0].MemoryBytes = 130 },
		},
	} {
		if len(x.c.spec.Apps) == 1 && x.c.spec.Variants[0].Accuracy > 0.85 && x.c.spec.DeviceTypes[0].MemoryBytes == 0 {
			x.c.spec.Apps[0].Floor = 0.85
		}
		_, err := x.c.plan(t)
		if err == nil {
			t.Errorf("no error for %v", x.want)
			continue
		}
		for _, want := range x.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v\nlacks %q", err, want)
			}
		}
		x.mend(x.c.spec)
		if _, err := x.c.plan(t); err != nil {
			t.Errorf("after the change: %v", err)
		}
	}
}

// Whenever the memory of all workers holds one variant of every stage, tried in every way, there is a plan; it has
// every stage and keeps to the memory.
func TestProposedPlacementsFindRoom(t *testing.T) {
	tight := 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var apps [][]model
		for range 1 + rng.IntN(5) {
			var list []model
			for range 1 + rng.IntN(3) {
				list = append(list, model{rng.Float64(), 10 + rng.IntN(120), int64(10 + rng.IntN(60))})
			}
			apps = append(apps, list)
		}
		machines := []int{1 + rng.IntN(2), rng.IntN(3)}
		c := newCrowd(machines, []int64{int64(50 + rng.IntN(70)), int64(50 + rng.IntN(70))}, apps...)
		p, err := c.plan(t, slices.Repeat([]float64{float64(rng.IntN(200))}, len(apps))...)
		can := c.packs(0, make([]int64, len(c.spec.Workers)))
		if can != (err == nil) {
			t.Fatalf("seed %d: a packing exists: %v; %v", seed, can, err)
		}
		if err != nil {
			continue
		}
		used, has := make([]int64, len(c.spec.Workers)), make([]bool, len(c.spec.Stages))
		for _, i := range p.Instances {
			has[i.Stage] = true
			for _, v := range i.Variants {
				used[i.Worker] += c.spec.Variants[v.Variant].MemoryBytes
				if c.Latency(v.Variant, i.DeviceType(c.spec), 1, 1) > 100*time.Millisecond {
					t.Fatalf("seed %d: %v is too slow on its worker", seed, v)
				}
			}
		}
		for w, n := range used {
			if room := c.spec.DeviceTypes[c.spec.Workers[w].DeviceType].MemoryBytes; n > room {
				t.Fatalf("seed %d: worker %d holds %d bytes of %d", seed, w, n, room)
			} else if n > room-10 {
				tight++
			}
		}
		if slices.Contains(has, false) {
			t.Fatalf("seed %d: some stage has nothing: %v", seed, has)
		}
	}
	if tight < 100 {
		t.Errorf("only %d workers were full", tight)
	}
}

// packs tells whether the stages from s on fit beside what is used.
func (c *crowd) packs(s int, used []int64) bool {
	if s == len(c.spec.Stages) {
		return true
	}
	for _, v := range c.spec.Stages[s].Variants {
		for w := range used {
			d := c.spec.Workers[w].DeviceType
			need := c.spec.Variants[v].MemoryBytes
			if c.Latency(v, d, 1, 1) > 100*time.Millisecond || used[w]+need > c.spec.DeviceTypes[d].MemoryBytes {
				continue
			}
			used[w] += need
			ok := c.packs(s+1, used)
			used[w] -= need
			if ok {
				return true
			}
		}
	}
	return false
}
