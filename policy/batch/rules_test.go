package batch_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/internal/ruletest"
	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

const ms = serving.Time(time.Millisecond)

type situation = ruletest.Situation

// What a rule decides and may decide, by short names.
var run, until, drop, same, decide = ruletest.Run, ruletest.Until, ruletest.Drop, ruletest.Same, ruletest.Decide

func TestRules(t *testing.T) {
	five := []int{100, 100, 100, 100, 100}
	for _, c := range []struct {
		name string
		rule batch.Rule
		s    situation
		want batch.Decision
	}{
		{
			"a first query that is behind its stage's part of the objective runs while later stages may make up for it",
			batch.EarlyDrop{}, situation{
				Base: 10, PerItem: 5, Limit: 4, Now: 90, Due: []int{96}, Last: 105,
			}, run(1),
		},
		{
			"and when they cannot", batch.EarlyDrop{}, situation{
				Base: 10, PerItem: 5, Limit: 4, Now: 91, Due: []int{96}, Last: 105,
			}, drop(),
		},

		// Nexus: work-conserving, the largest batch in time for the first.
		{
			"earlydrop runs at once", batch.EarlyDrop{}, situation{
				Base: 10, PerItem: 5, Limit: 8, Due: []int{100},
			}, run(1),
		},
		{
			"earlydrop takes the largest batch that is in time", batch.EarlyDrop{}, situation{
				Base: 10, PerItem: 5, Limit: 8, Now: 75, Due: five,
			}, run(3),
		},
		{
			"earlydrop gives up what cannot make it", batch.EarlyDrop{}, situation{
				Base: 10, PerItem: 5, Limit: 8, Now: 86, Due: five,
			}, drop(),
		},
		{
			"earlydrop serves late when it must", batch.EarlyDrop{}, situation{
				Base: 10, PerItem: 5, Limit: 8, Now: 86, Due: five, Keep: true,
			}, run(5),
		},

		// INFless §3.2 with its numbers: SLO 200 ms, execution 50 ms, batch 4: the time-out is 150 ms.
		{
			"filltimeout waits for the batch to fill", batch.FillTimeout{}, situation{
				Base: 50, Limit: 4, Now: 10, Due: []int{200, 210}, BatchTimeout: 150,
			}, until(150),
		},
		{
			"filltimeout runs what there is at the time-out", batch.FillTimeout{}, situation{
				Base: 50, Limit: 4, Now: 150, Due: []int{200, 210}, BatchTimeout: 150,
			}, run(2),
		},
		{
			"filltimeout runs a full batch at once", batch.FillTimeout{}, situation{
				Base: 50, Limit: 4, Now: 10, Due: five, BatchTimeout: 150,
			}, run(4),
		},
		{
			"filltimeout with a time-out of its own", batch.FillTimeout{Timeout: 5 * time.Millisecond}, situation{
				Base: 50, Limit: 4, Now: 3, Due: []int{200}, BatchTimeout: 150,
			}, until(5),
		},

		{
			"fixed waits for its size", batch.Fixed{Size: 3}, situation{
				Base: 10, PerItem: 5, Limit: 8, Due: []int{100, 100},
			}, until(80),
		},
		{"fixed runs its size", batch.Fixed{Size: 3}, situation{Base: 10, PerItem: 5, Limit: 8, Due: five}, run(3)},
		{
			"fixed does not let the first be late", batch.Fixed{Size: 3}, situation{
				Base: 10, PerItem: 5, Limit: 8, Now: 80, Due: []int{100, 100},
			}, run(2),
		},

		{"single runs one", batch.Single{}, situation{Base: 10, Limit: 8, Due: five}, run(1)},

		{
			"queries of several Items: as many as the limit holds", batch.EarlyDrop{}, situation{
				Base: 10, PerItem: 1, Limit: 8, Due: five, Items: []int{3, 4, 5, 1, 1},
			}, run(2),
		},
		{
			"mostaccurate with one variant takes all", batch.MostAccurate{}, situation{
				Base: 10, PerItem: 5, Limit: 8, Due: five,
			}, run(5),
		},
		{
			"mostaccurate takes its limit when more wait", batch.MostAccurate{}, situation{
				Base: 10, PerItem: 5, Limit: 4, Due: five,
			}, run(4),
		},
	} {
		if got := decide(c.rule, c.s); !same(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// batch.MostAccurate lowers accuracy as the queue grows, no further than it must.
func TestMostAccurateFollowsTheQueue(t *testing.T) {
	spec := &serving.Spec{Apps: []serving.App{{}}, Stages: []serving.Stage{{}}, DeviceTypes: []serving.DeviceType{{}},
		Variants: []serving.Variant{
			{Name: "slow", Accuracy: 0.9, MaxBatch: 64}, {Name: "middle", Accuracy: 0.8, MaxBatch: 64},
			{Name: "fast", Accuracy: 0.6, MaxBatch: 64}}}
	f := fleet.New(spec, perVariant{10 * time.Millisecond, 2 * time.Millisecond, time.Millisecond / 2})
	i := f.Launch(fleet.Placement{
		Terms: fleet.Terms{Slots: 1}, Variants: []fleet.Loaded{
			{Variant: 0, Limit: 5, Wanted: true}, {Variant: 1, Limit: 25, Wanted: true},
			{Variant: 2, Limit: 64, Wanted: true},
		},
	}, 0)
	for v := range 3 {
		f.Warm(i, serving.VariantID(v))
	}
	for n, want := range map[int]serving.VariantID{1: 0, 5: 0, 6: 1, 25: 1, 26: 2, 64: 2, 90: 2} {
		for i.Queue().Len() < n {
			r := f.Add(&fleet.Work{
				Query: serving.QueryID(i.Queue().Len() + 1), Items: 1, Pin: serving.None, Deadline: 100 * ms,
			})
			f.Wait(r)
			f.Assign(r, i, 0)
		}
		for i.Queue().Len() > n {
			r := i.Queue().Head()
			f.Dequeue(r)
			f.Release(r)
		}
		d := batch.MostAccurate{}.New().Decide(&batch.View{
			Fleet: &f.View, Instance: i, MayDrop: true, Variant: 0, Limit: 5, Ready: n, Items: n,
		})
		if d.Action != batch.Run || d.Variant != want || d.N != min(n, 64) {
			t.Errorf("%d queries wait: %+v, want variant %d", n, d, want)
		}
	}
}

type perVariant []time.Duration

func (p perVariant) Latency(v serving.VariantID, _ serving.DeviceTypeID, items, _ int) time.Duration {
	return time.Duration(items) * p[v]
}
func (perVariant) Learner() profile.Learner { return nil }

func (p perVariant) Load(serving.VariantID, serving.DeviceTypeID) time.Duration { return 0 }

// On random situations, InTime and Fit equal a search by counting.
func TestAgainstBruteForce(t *testing.T) {
	for seed := uint64(1); seed <= 3000; seed++ {
		rng := rand.New(rand.NewPCG(seed, 2))
		s := ruletest.RandomSituation(rng)
		v := s.View()
		at := serving.Time(rng.IntN(150)) * ms
		want := 0
		for b := 1; b <= s.Limit && v.Now+serving.Time(v.Latency(b)) <= at; b++ {
			want = b
		}
		if got := v.InTime(at, s.Limit); got != want {
			t.Fatalf("seed %d: InTime = %d, counting says %d", seed, got, want)
		}
		n, items := 0, 0
		for n < len(s.Items) && items+s.Items[n] <= s.Limit {
			items += s.Items[n]
			n++
		}
		if gn, gi := v.Fit(s.Limit); gn != n || gi != items {
			t.Fatalf("seed %d: Fit = %d queries, %d items, counting says %d, %d", seed, gn, gi, n, items)
		}
	}
}
