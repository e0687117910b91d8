package ruletest

import (
	"math/rand/v2"
	"time"

	"github.com/sluice-serving/sluice/policy/batch"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/monitor"
	"github.com/sluice-serving/sluice/serving/profile"
)

const ms = serving.Time(time.Millisecond)

// Situation is an instance with queries in its queue, due at the given times in ms.
type Situation struct {
	Base, PerItem int // of the latency, ms
	Limit         int
	Now           int   // ms
	Due           []int // ms
	Items         []int // nil: one each
	Ready         []int // when each began to wait, ms; nil: 0
	Keep          bool  // late queries are served
	BatchTimeout  int   // ms
	Last          int   // ms: LatestEnd of each; 0: due
}

// View is a batcher's view of the situation.
func (s Situation) View() *batch.View {
	spec := &serving.Spec{
		Apps: []serving.App{{}}, Variants: []serving.Variant{{Name: "v", Accuracy: 0.9, MaxBatch: 64}},
		Stages: []serving.Stage{{}}, DeviceTypes: []serving.DeviceType{{}},
	}
	f := fleet.New(spec, profile.Constant{
		Base: time.Duration(s.Base) * time.Millisecond, PerItem: time.Duration(s.PerItem) * time.Millisecond,
	})
	i := f.Launch(fleet.Placement{
		Terms:    fleet.Terms{Slots: 1, BatchTimeout: time.Duration(s.BatchTimeout) * time.Millisecond},
		Variants: []fleet.Loaded{{Limit: s.Limit, Wanted: true}},
	}, 0)
	f.Warm(i, 0)
	total := 0
	for k, d := range s.Due {
		items, ready := 1, 0
		if s.Items != nil {
			items = s.Items[k]
		}
		if s.Ready != nil {
			ready = s.Ready[k]
		}
		total += items
		r := f.Add(&fleet.Work{
			Query: serving.QueryID(k + 1), Items: int32(items), Pin: serving.None, Deadline: serving.Time(d) * ms,
			LatestEnd: serving.Time(s.Last) * ms, Ready: serving.Time(ready) * ms,
		})
		f.Wait(r)
		f.Assign(r, i, serving.Time(ready)*ms)
	}
	return &batch.View{
		Now: serving.Time(s.Now) * ms, Fleet: &f.View, Instance: i, MayDrop: !s.Keep, Variant: 0, Limit: s.Limit,
		Ready: len(s.Due), Items: total,
	}
}

// byVariant is a profile in which n items take n times the variant's number of milliseconds.
type byVariant []int

func (b byVariant) Latency(v serving.VariantID, _ serving.DeviceTypeID, items, _ int) time.Duration {
	return time.Duration(b[v]*items) * time.Millisecond
}

func (byVariant) Learner() profile.Learner { return nil }

func (b byVariant) Load(serving.VariantID, serving.DeviceTypeID) time.Duration { return 0 }

// Queue returns the view of an instance with three variants of 40, 20 and 5 ms an item, best first, and queries with
// the given deadlines in ms.
func Queue(due ...int) *batch.View {
	_, v := QueueOf(due...)
	return v
}

// QueueOf is Queue and returns the instance's fleet as well.
func QueueOf(due ...int) (*fleet.Fleet, *batch.View) {
	spec := &serving.Spec{Apps: []serving.App{{}}, Stages: []serving.Stage{{}}, DeviceTypes: []serving.DeviceType{{}},
		Variants: []serving.Variant{
			{Accuracy: 0.9, MaxBatch: 8}, {Accuracy: 0.8, MaxBatch: 8}, {Accuracy: 0.7, MaxBatch: 8},
		}}
	f := fleet.New(spec, byVariant{40, 20, 5})
	i := f.Launch(fleet.Placement{
		Terms: fleet.Terms{Slots: 1}, Variants: []fleet.Loaded{
			{Variant: 0, Limit: 8, Wanted: true}, {Variant: 1, Limit: 8, Wanted: true},
			{Variant: 2, Limit: 8, Wanted: true},
		},
	}, 0)
	for v := range spec.Variants {
		f.Warm(i, serving.VariantID(v))
	}
	for k, d := range due {
		r := f.Add(&fleet.Work{
			Query: serving.QueryID(k + 1), Items: 1, Pin: serving.None, Deadline: serving.Time(d) * ms,
		})
		f.Wait(r)
		f.Assign(r, i, 0)
	}
	return f, &batch.View{
		Fleet: &f.View, Instance: i, Monitor: &monitor.NewRates(1).View, Limit: 8, Ready: len(due), Items: len(due),
	}
}

// RandomSituation has up to 15 queries of a few items.
func RandomSituation(rng *rand.Rand) Situation {
	s := Situation{Base: rng.IntN(20), PerItem: 1 + rng.IntN(8), Limit: 1 + rng.IntN(12), Now: rng.IntN(80)}
	due := 20 + rng.IntN(80)
	for range 1 + rng.IntN(15) {
		s.Due = append(s.Due, due)
		due += rng.IntN(20)
		items := 1
		if rng.IntN(4) == 0 {
			items = 1 + rng.IntN(s.Limit)
		}
		s.Items = append(s.Items, items)
	}
	return s
}

// Run is the decision to run n queries.
func Run(n int) batch.Decision { return batch.Decision{Action: batch.Run, N: n} }

// Until is the decision to wait until a time in ms.
func Until(at int) batch.Decision {
	return batch.Decision{Action: batch.Wait, Until: serving.Time(at) * ms}
}

// Drop is the decision to drop the first query.
func Drop() batch.Decision { return batch.Decision{Action: batch.Drop} }

// Same tells whether two decisions are alike but for the variant and the reason.
func Same(a, b batch.Decision) bool {
	return a.Action == b.Action && a.N == b.N && a.Until == b.Until
}

// Decide is what a rule decides in a situation.
func Decide(r batch.Rule, s Situation) batch.Decision { return r.New().Decide(s.View()) }
