package fleet

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// What Beside computes is what comes out when both batches advance in small steps, at the speed of as many as run.
func TestBesideAgainstSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 5))
	for range 300 {
		alone := time.Duration(1 + rng.IntN(100_000))
		together := time.Duration(float64(alone) * (1 + 1.5*rng.Float64()))
		rest := time.Duration(rng.IntN(200_000))
		takes, delay := Overlap(alone, together, rest)
		speed := float64(alone) / float64(together)
		own, other, now, otherEnd := float64(alone), float64(rest), 0.0, 0.0
		for own > 0 || other > 0 {
			v := 1.0
			if own > 0 && other > 0 {
				v = speed
			}
			own, other, now = own-v, other-v, now+1
			if other > -1 && other <= 0 && otherEnd == 0 {
				otherEnd = now
			}
			if own > -1 && own <= 0 && v == v && takes > 0 {
				if d := now - float64(takes); d < -4 || d > 4 {
					t.Fatalf("%d beside %d, %d together: takes %d, in steps %v", alone, rest, together, takes, now)
				}
				takes = 0
			}
		}
		if d := otherEnd - float64(rest+delay); rest > 0 && (d < -4 || d > 4) {
			t.Fatalf("%d beside %d, %d together: the other ends at %v, want %d", alone, rest, together, otherEnd,
				rest+delay)
		}
	}
}

// A batch begins beside that of another instance only where that was asked for. Both are believed to end later, and the
// time that the machine is busy is that of both, one after the other.
func TestBeginsToOverlap(t *testing.T) {
	spec := &serving.Spec{Apps: []serving.App{{}}, DeviceTypes: []serving.DeviceType{{Cores: 2}},
		Workers: make([]serving.Worker, 1), Stages: []serving.Stage{{}}, Variants: []serving.Variant{{MaxBatch: 8}}}
	f := New(spec, profile.Constant{Base: 10})
	launch := func(ordinal int32) *Instance {
		i := f.Launch(Placement{Key: Key{Ordinal: ordinal}, Variants: []Loaded{{Limit: 8, Wanted: true}},
			Terms: Terms{Slots: 1, TimeShared: true}}, 0)
		f.Warm(i, 0)
		return i
	}
	first, able := launch(1), launch(2)
	assign := func(i *Instance) Ref {
		r := f.Add(&Work{Query: 1, Items: 1, Deadline: 1e9, Pin: serving.None})
		f.Wait(r)
		f.Assign(r, i, 0)
		return r
	}
	check := func() {
		t.Helper()
		if err := f.Check(); err != nil {
			t.Fatal(err)
		}
	}
	assign(first)
	if first.RoomToOverlap() {
		t.Error("nothing runs, and a batch could begin beside it")
	}
	f.Start(first, 1, 0, 1, 0, 100)
	if !able.RoomToOverlap() || first.RoomToOverlap() {
		t.Errorf("room to overlap is %v and %v, want only on the other instance", able.RoomToOverlap(),
			first.RoomToOverlap())
	}
	r := assign(able)
	if able.FreeSlots() > 0 {
		t.Error("a slot is free although nobody asked")
	}
	f.SetOverlap(able)
	if able.FreeSlots() != 1 {
		t.Errorf("%d slots are free, want the one beside", able.FreeSlots())
	}
	f.Dequeue(r)
	f.Release(r)
	if assign(able); able.FreeSlots() > 0 {
		t.Error("what was asked for one task is granted to another")
	}
	f.SetOverlap(able)
	b := f.Start(able, 2, 0, 1, 50, 20)
	check()
	if !b.Overlaps || b.Expected != 70 || b.Delayed != 10 {
		t.Errorf("the second batch is %+v, want it to end at 70, 10 of it by the other", b)
	}
	if x := first.Batch(0); !x.Overlaps || x.Expected != 110 || x.Delayed != 10 {
		t.Errorf("the first batch is %+v, want it to end at 110", x)
	}
	if able.RoomToOverlap() || first.RoomToOverlap() || able.FreeSlots() > 0 {
		t.Error("a third batch could begin")
	}
	for _, x := range []struct {
		i  *Instance
		id serving.BatchID
		at serving.Time
	}{{able, 2, 70}, {first, 1, 110}} {
		done, ok := f.Finish(x.i, x.id, x.at)
		if !ok {
			t.Fatalf("batch %d does not run", x.id)
		}
		f.Release(done.Head)
	}
	check()
	if busy := first.Busy() + able.Busy(); busy != 110 {
		t.Errorf("busy for %d, want the 110 in which something ran", busy)
	}
}
