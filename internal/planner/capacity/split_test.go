package capacity_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// severalApps has apps of one variant of so many bytes each, and workers by type, on which one item takes 10 ms, and
// every further one 1 ms; twice as long on the second type.
func severalApps(t *testing.T, bytes []int64, workers []int) (*serving.Spec, profile.Profile) {
	t.Helper()
	spec := &serving.Spec{}
	var m serving.Measurements
	for d, n := range workers {
		spec.DeviceTypes = append(spec.DeviceTypes, serving.DeviceType{
			Name: fmt.Sprintf("d%d", d), Cores: 1, MemoryBytes: 100,
		})
		for range n {
			spec.Workers = append(spec.Workers, serving.Worker{DeviceType: serving.DeviceTypeID(d)})
		}
	}
	for a, size := range bytes {
		spec.Apps = append(spec.Apps, serving.App{
			Name: fmt.Sprintf("app%d", a), SLO: serving.SLO{Latency: 200 * time.Millisecond, Percentile: 99}, Weight: 1,
			QueueLimit: 100, Stages: []serving.StageID{serving.StageID(a)},
		})
		spec.Stages = append(spec.Stages, serving.Stage{
			Name: spec.Apps[a].Name, App: serving.AppID(a), Variants: []serving.VariantID{serving.VariantID(a)},
		})
		spec.Variants = append(spec.Variants, serving.Variant{
			Name: fmt.Sprintf("v%d", a), Stage: serving.StageID(a), Accuracy: 0.9, MaxBatch: 4, MemoryBytes: size,
		})
		for d := range workers {
			for b := 1; b <= 4; b++ {
				m.Latency = append(m.Latency, simtest.Point(serving.VariantID(a), serving.DeviceTypeID(d), b, 1,
					time.Duration((1+d)*(9+b))*time.Millisecond, 0))
			}
		}
	}
	p, err := profile.NewTable(spec, m, profile.P95)
	if err != nil {
		t.Fatal(err)
	}
	return spec, p
}

func split(t *testing.T, spec *serving.Spec, p profile.Profile, s *fleet.Snapshot, rates []float64,
	oneType bool) (*capacity.Split, error) {
	t.Helper()
	down, broken := capacity.Unusable(spec, s)
	return capacity.Splitter{
		Spec: spec, Believed: p, Snapshot: s, Asked: capacity.StageDemands(spec, rates), Down: down, Broken: broken,
		OneType: oneType,
	}.Split()
}

// Three apps on one worker that serves four queries in 13 ms: 307/s. The first has the worker, and keeps the time that
// the others leave. Each has memory for its variant, and a third of what is left.
func TestSharedWorkersAreDivided(t *testing.T) {
	spec, p := severalApps(t, []int64{20, 30, 20}, []int{1})
	got, err := split(t, spec, p, nil, []float64{100, 50, 20}, false)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Sharing, []serving.StageID{1, 2}) {
		t.Errorf("%v share, want those with less demand", got.Sharing)
	}
	able := 4 / 0.013
	for s, want := range []struct {
		part   float64
		memory int64
	}{{1 - 70/able, 30}, {1 - 120/able, 40}, {1 - 150/able, 30}} {
		id := serving.StageID(s)
		part, memory := got.TimePart(id), got.Memory(id, 0)
		if math.Abs(part-want.part) > 1e-6 || memory != want.memory {
			t.Errorf("stage %d: %v of the time and %d bytes, want %v", s, part, memory, want)
		}
	}
	if _, err = split(t, spec, p, nil, []float64{1000, 500, 500}, false); err != nil {
		t.Errorf("overload: %v", err)
	}
	spec.Variants[1].MemoryBytes = 70
	if _, err = split(t, spec, p, nil, []float64{100, 50, 20}, false); err == nil {
		t.Error("120 bytes share a worker of 100")
	}
}

// Every stage gets a worker that is up, only stages without one of their own share, shared time adds up to all of a
// worker at most where it is enough, and a second split from what the first runs moves nothing.
func TestSplitsOfRandomFleets(t *testing.T) {
	shared := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 14))
		sizes := make([]int64, 1+rng.IntN(8))
		for a := range sizes {
			sizes[a] = 1 + rng.Int64N(12)
		}
		spec, p := severalApps(t, sizes, []int{1 + rng.IntN(3), rng.IntN(4)})
		rates := make([]float64, len(sizes))
		for a := range rates {
			rates[a] = 60 * rng.Float64()
		}
		oneType := rng.IntN(2) == 0
		got, err := split(t, spec, p, nil, rates, oneType)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		out := &plan.Plan{}
		users := make(map[serving.WorkerID][]serving.StageID)
		for s, workers := range got.Workers {
			if len(workers) == 0 {
				t.Fatalf("seed %d: stage %d has no worker", seed, s)
			}
			for _, w := range workers {
				users[w] = append(users[w], serving.StageID(s))
				if oneType && spec.Workers[w].DeviceType != spec.Workers[workers[0]].DeviceType {
					t.Fatalf("seed %d: stage %d has workers of two types", seed, s)
				}
				out.Instances = append(out.Instances, plan.Instance{
					Worker: w, Stage: serving.StageID(s), Slots: 1,
					Variants: []plan.Variant{{Variant: serving.VariantID(s), Limit: 1}},
				})
			}
		}
		for w, stages := range users {
			need := int64(0)
			for _, s := range stages {
				need += got.Memory(s, spec.Workers[w].DeviceType)
			}
			if len(stages) > 1 && need > 100 {
				t.Fatalf("seed %d: %d bytes are given away on worker %d", seed, need, w)
			}
		}
		shared += len(got.Sharing)
		got.Complete(out)
		snapshot := &fleet.Snapshot{}
		places := make(map[fleet.Key]bool)
		for _, i := range out.Instances {
			key := fleet.Key{Worker: i.Worker, Ordinal: max(i.Place, 1)}
			if places[key] || i.TimeShared != (len(users[i.Worker]) > 1) {
				t.Fatalf("seed %d: %+v", seed, i)
			}
			places[key] = true
			snapshot.Instances = append(snapshot.Instances, fleet.InstanceSnapshot{
				Key: key, Stage: i.Stage, State: fleet.Ready,
			})
		}
		again, err := split(t, spec, p, snapshot, rates, oneType)
		if err != nil || fmt.Sprint(again.Workers) != fmt.Sprint(got.Workers) {
			t.Fatalf("seed %d: %v becomes %v (%v)", seed, got.Workers, again.Workers, err)
		}
	}
	if shared < 100 {
		t.Errorf("only %d stages share", shared)
	}
}
