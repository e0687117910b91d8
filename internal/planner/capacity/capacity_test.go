package capacity_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/planner/capacity"
	"github.com/sluice-serving/sluice/internal/simtest"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// The limit is the largest batch that keeps every rule, by trying all; the rate is that of this batch.
func TestRuleAgainstSearch(t *testing.T) {
	zeros := 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		c := simtest.Random(rng)
		r := capacity.BatchRule{Fraction: []float64{0, 0.1, 0.8}[rng.IntN(3)], Single: rng.IntN(5) == 0}
		if rng.IntN(2) == 0 {
			r.Batches = []int{1, 2, 4, 8}
		}
		for v := range c.Spec.Variants {
			x := &c.Spec.Variants[v]
			x.MemoryBytes, x.ItemBytes = int64(rng.IntN(20)), int64(rng.IntN(4))
			app := &c.Spec.Apps[c.Spec.Stages[x.Stage].App]
			app.Floor = rng.Float64()
			within := time.Duration(1+rng.IntN(100)) * time.Millisecond
			for d := range c.Spec.DeviceTypes {
				device := &c.Spec.DeviceTypes[d]
				device.MemoryBytes = int64(rng.IntN(60))
				fraction := r.Fraction
				if fraction == 0 {
					fraction = 0.5
				}
				want := 0
				for b := 1; b <= x.MaxBatch; b++ {
					listed := r.Batches == nil
					for _, y := range r.Batches {
						listed = listed || y == b
					}
					fits := device.MemoryBytes == 0 || x.MemoryBytes+int64(b)*x.ItemBytes <= device.MemoryBytes
					fast := float64(c.Profile.Latency(serving.VariantID(v), serving.DeviceTypeID(d), b, 1)) <
						math.Floor(fraction*float64(within))
					if listed && fits && fast && x.Accuracy >= app.Floor && (b == 1 || !r.Single) {
						want = b
					}
				}
				limit, rate := r.Capacity(c.Profile, c.Spec, serving.VariantID(v), serving.DeviceTypeID(d), within)
				if limit != want {
					t.Fatalf("seed %d, variant %d on %d: limit %d, want %d", seed, v, d, limit, want)
				}
				if want == 0 {
					zeros++
					if rate != 0 {
						t.Fatalf("seed %d: carries %v in batches of none", seed, rate)
					}
					continue
				}
				if l := c.Profile.Latency(serving.VariantID(v), serving.DeviceTypeID(d), want,
					1); math.Abs(rate*l.Seconds()-float64(want)) > 1e-9 {
					t.Fatalf("seed %d: %v/s of batches of %d in %v", seed, rate, want, l)
				}
			}
		}
	}
	if zeros == 0 {
		t.Error("every variant could be planned everywhere")
	}
}

// An app a -> b (3 items each), a -> c, b and c -> d. b gets three times the queries, the join d as many as b sends it,
// and the objective is divided into three parts.
func TestAsk(t *testing.T) {
	spec := &serving.Spec{
		Apps: []serving.App{
			{SLO: serving.SLO{Latency: 300 * time.Millisecond}, Stages: []serving.StageID{0, 1, 2, 3}}, {
				SLO: serving.SLO{Latency: time.Second}, Stages: []serving.StageID{4},
			},
		},
		Stages: []serving.Stage{{
			Next: []serving.Edge{{To: 1, FanOut: 3}, {To: 2, FanOut: 1}},
		}, {Next: []serving.Edge{{To: 3, FanOut: 1}}, Joins: 1},
			{Next: []serving.Edge{{To: 3, FanOut: 1}}, Joins: 1}, {Joins: 2}, {
				App: 1, Variants: []serving.VariantID{0, 1},
			}},
		Variants: []serving.Variant{{Stage: 4, Accuracy: 0.6}, {Stage: 4, Accuracy: 0.8}},
	}
	got := capacity.StageDemands(spec, []float64{20})
	for s, want := range []capacity.StageDemand{
		{App: 0, FanOut: 1, Rate: 20, Budget: 100 * time.Millisecond}, {
			App: 0, FanOut: 3, Rate: 60, Budget: 100 * time.Millisecond,
		},
		{App: 0, FanOut: 1, Rate: 20, Budget: 100 * time.Millisecond}, {
			App: 0, FanOut: 3, Rate: 60, Budget: 100 * time.Millisecond,
		},
		{App: 1, FanOut: 1, Rate: capacity.MinRate, Budget: time.Second, BestAccuracy: 0.8},
	} {
		if got[s] != want {
			t.Errorf("stage %d: %+v, want %+v", s, got[s], want)
		}
	}
	if v := got[4].NormalizedAccuracy(&spec.Variants[0]); math.Abs(v-0.75) > 1e-12 {
		t.Errorf("0.6 of at most 0.8 is worth %v", v)
	}
	if v := got[0].NormalizedAccuracy(&spec.Variants[0]); v != 1 {
		t.Errorf("where no accuracy is known a variant is worth %v", v)
	}
}

func TestHostedAndRunning(t *testing.T) {
	warm, coming, leaving := fleet.Loaded{Variant: 1, Warm: true, Wanted: true}, fleet.Loaded{Variant: 2, Wanted: true},
		fleet.Loaded{Variant: 3, Warm: true}
	for _, c := range []struct {
		list []fleet.Loaded
		want serving.VariantID
	}{
		{[]fleet.Loaded{leaving, warm}, 1}, {[]fleet.Loaded{warm, coming}, 2}, {[]fleet.Loaded{leaving}, serving.None},
		{nil, serving.None},
	} {
		v, ok := capacity.HostedVariant(fleet.InstanceSnapshot{Variants: c.list})
		if v != c.want || ok != (c.want >= 0) {
			t.Errorf("%+v hosts %d, want %d", c.list, v, c.want)
		}
	}
	s := &fleet.Snapshot{Down: []serving.WorkerID{1}, Broken: []serving.VariantID{2}}
	for w, state := range []fleet.State{fleet.Launching, fleet.Ready, fleet.Draining, fleet.Stopped} {
		s.Instances = append(s.Instances, fleet.InstanceSnapshot{
			Key: fleet.Key{Worker: serving.WorkerID(w)}, State: state,
		})
	}
	if r := capacity.RunningByWorker(s); len(r) != 2 || r[0].State != fleet.Launching || r[1].State != fleet.Ready {
		t.Errorf("%+v run, want the launching and the ready one", r)
	}
	down, broken := capacity.Unusable(&serving.Spec{
		Workers: make([]serving.Worker, 2), Variants: make([]serving.Variant, 3),
	}, s)
	if down[0] || !down[1] || broken[0] || broken[1] || !broken[2] {
		t.Errorf("down %v, broken %v", down, broken)
	}
	if down, _ := capacity.Unusable(&serving.Spec{Workers: make([]serving.Worker, 2)}, nil); down[0] || down[1] ||
		len(capacity.RunningByWorker(nil)) != 0 {
		t.Error("without a snapshot nothing runs and nothing is unfit")
	}
}

// Placements realise the counts with the fewest loads and, among those, the most instances that stay. All placements
// are tried.
func TestPlaceAgainstAll(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		groups := make([][]serving.WorkerID, 1+rng.IntN(2))
		var group []int
		for w := range 2 + rng.IntN(4) {
			g := rng.IntN(len(groups))
			groups[g] = append(groups[g], serving.WorkerID(w))
			group = append(group, g)
		}
		var hosts []capacity.Offer
		for g := range groups {
			for v := range 4 { // two variants of each of two stages
				hosts = append(hosts, capacity.Offer{Group: g, Stage: serving.StageID(v / 2),
					Variant: serving.VariantID(v)})
			}
		}
		running := make(map[serving.WorkerID]fleet.InstanceSnapshot)
		counts := make([]int, len(hosts))
		for w, g := range group {
			if v := rng.IntN(5); v < 4 {
				running[serving.WorkerID(w)] = fleet.InstanceSnapshot{
					Stage: serving.StageID(v / 2), Variants: []fleet.Loaded{
						{Variant: serving.VariantID(v), Wanted: true, Warm: true},
					},
				}
			}
			if v := rng.IntN(5); v < 4 {
				counts[4*g+v]++
			}
		}
		cost := func(w, k int) int { // a load costs 100, an instance that does not stay costs 1
			i, ok := running[serving.WorkerID(w)]
			switch {
			case ok && i.Variants[0].Variant == hosts[k].Variant:
				return 0
			case ok && i.Stage == hosts[k].Stage:
				return 100
			}
			return 101
		}
		least := math.MaxInt
		left := append([]int(nil), counts...)
		var try func(w, sum int)
		try = func(w, sum int) {
			if w == len(group) {
				for _, n := range left {
					if n > 0 {
						return
					}
				}
				least = min(least, sum)
				return
			}
			try(w+1, sum)
			for k := range hosts {
				if left[k] > 0 && hosts[k].Group == group[w] {
					left[k]--
					try(w+1, sum+cost(w, k))
					left[k]++
				}
			}
		}
		try(0, 0)
		at, loads := capacity.PlaceCounts(groups, hosts, counts, running)
		sum, have := 0, make([]int, len(hosts))
		for w, k := range at {
			if hosts[k].Group != group[w] {
				t.Fatalf("seed %d: worker %d of group %d got a host of group %d", seed, w, group[w], hosts[k].Group)
			}
			have[k]++
			sum += cost(int(w), k)
		}
		for k := range counts {
			if have[k] != counts[k] {
				t.Fatalf("seed %d: %v placed, want %v", seed, have, counts)
			}
		}
		if sum != least || loads != sum/100 {
			t.Fatalf("seed %d: %d loads said, costs %d, the least is %d", seed, loads, sum, least)
		}
	}
}

func TestHopelessSaysWhy(t *testing.T) {
	c := simtest.Uniform(1, 10*time.Millisecond, time.Millisecond, time.Second, 4)
	for want, err := range map[string]error{
		"all 1 are down": capacity.Unservable(c.Profile, c.Spec, 0, capacity.StageDemand{}, nil, []bool{false}),
		`the fastest, "model" on "cpu" takes 11ms for one item; half of the stage's part of the SLO is 5ms`: capacity.
			Unservable(c.Profile, c.Spec, 0, capacity.StageDemand{Budget: 10 * time.Millisecond},
				[]serving.DeviceTypeID{0}, []bool{false}),
		"all failed to load": capacity.Unservable(c.Profile, c.Spec, 0, capacity.StageDemand{},
			[]serving.DeviceTypeID{0}, []bool{true}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error that says %q", err, want)
		}
	}
}
