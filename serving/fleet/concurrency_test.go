package fleet

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Batches of instances that share all of a worker count for each other. Those on a part of it, with cores of their own,
// or on other workers do not. Counted anew after each of many random starts and ends.
func TestConcurrencyAgainstCounting(t *testing.T) {
	spec := &serving.Spec{
		Apps:        []serving.App{{}},
		DeviceTypes: []serving.DeviceType{{Cores: 2}, {Part: true, Cores: 1}},
		Workers:     make([]serving.Worker, 3),
		Stages:      []serving.Stage{{}}, Variants: []serving.Variant{{MaxBatch: 8}}}
	for seed := uint64(1); seed <= 20; seed++ {
		rng := rand.New(rand.NewPCG(seed, 11))
		f := New(spec, profile.Constant{Base: time.Millisecond})
		var all []*Instance
		for range 8 {
			p := Placement{Key: Key{Worker: serving.WorkerID(rng.IntN(3))},
				DeviceType: serving.DeviceTypeID(rng.IntN(2)), Cores: rng.IntN(3), Terms: Terms{Slots: 1 + rng.IntN(3)},
				Variants: []Loaded{{Limit: 8, Wanted: true}}}
			all = append(all, f.Launch(p, 0))
			f.Warm(all[len(all)-1], 0)
		}
		whole := func(i *Instance) bool { return i.DeviceType() == 0 && i.Cores() != 1 }
		next := serving.BatchID(0)
		for step := range 400 {
			i := all[rng.IntN(len(all))]
			want := i.Running()
			if whole(i) {
				want = 0
				for _, o := range all {
					if whole(o) && o.Worker() == i.Worker() {
						want += o.Running()
					}
				}
			}
			if got := f.Concurrency(i); got != want {
				t.Fatalf("seed %d, step %d: %d run beside each other, want %d", seed, step, got, want)
			}
			if i.FreeSlots() > 0 && rng.IntN(3) > 0 {
				r := f.Add(&Work{Query: 1, Items: 1, Deadline: 1e9, Pin: serving.None})
				f.Wait(r)
				f.Assign(r, i, 0)
				next++
				if b := f.Start(i, next, 0, 1, 0, 0); b.Concurrency != want+1 {
					t.Fatalf("seed %d, step %d: began as one of %d, want %d", seed, step, b.Concurrency, want+1)
				}
			} else if i.Running() > 0 {
				b, _ := f.Finish(i, i.Batch(0).ID, 0)
				f.Release(b.Head)
			}
			if err := f.Check(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
