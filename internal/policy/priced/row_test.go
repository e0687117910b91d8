package priced

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// A row against a walk through the queue, through random arrivals, late ones and ones that overtake included, batches
// that the row is told of, and tasks that leave without a word. Refs are used again, as the fleet does.
func TestRowAgainstQueue(t *testing.T) {
	spec := &serving.Spec{
		Apps: []serving.App{{}}, DeviceTypes: []serving.DeviceType{{}}, Stages: []serving.Stage{{}},
		Variants: []serving.Variant{{Accuracy: 0.9, MaxBatch: 64}},
	}
	kept, anew := 0, 0
	for seed := uint64(1); seed <= 40; seed++ {
		rng := rand.New(rand.NewPCG(seed, 7))
		f := fleet.New(spec, profile.Constant{Base: 10 * time.Millisecond, PerItem: time.Millisecond})
		q, x, now := f.Central(0), &row{}, serving.Time(0)
		const least, slo = 0.01, 200 * time.Millisecond
		for n := 1; n < 2000; n++ {
			now = now.Add(time.Duration(rng.IntN(int(2 * time.Millisecond))))
			switch k := rng.IntN(12); {
			case k < 8:
				w := fleet.Work{Query: serving.QueryID(n), Items: 1, Pin: serving.None, Deadline: now.Add(slo)}
				if seed%4 == 0 && rng.IntN(50) == 0 {
					w.Deadline = now.Add(slo / 2) // it overtakes
				}
				if seed%4 == 1 && rng.IntN(50) == 0 {
					w.LatestEnd = w.Deadline.Add(slo / 2) // the next one must end before it
				}
				w.Due = w.Deadline
				f.Wait(f.Add(&w))
			case k < 10 && q.Len() > 0: // the head leaves, as a late task does; sometimes one from the middle
				ref := q.Head()
				for range rng.IntN(20) / 19 * 3 {
					if next := f.Next(ref); next != fleet.Nil {
						ref = next
					}
				}
				f.Dequeue(ref)
				f.Release(ref)
			case q.Len() > 0: // a batch
				list := x.follow(&f.View, q, now, least)
				if len(list) == 0 {
					break
				}
				at := rng.IntN(min(len(list), 3))
				var batch []fleet.Ref
				for _, y := range list[at:min(at+1+rng.IntN(8), len(list))] {
					batch = append(batch, y.ref)
				}
				x.take(at, len(batch))
				for _, ref := range batch {
					f.Dequeue(ref)
					f.Release(ref)
				}
			}
			if rng.IntN(3) == 0 {
				continue // several things happen between two looks
			}
			var want []fleet.Ref
			for ref := q.Head(); ref != fleet.Nil && len(want) < mostTasks; ref = f.Next(ref) {
				if y := newPlace(ref, f.Task(ref)); y.left(now) >= least {
					want = append(want, ref)
				}
			}
			before := len(x.memory)
			var got []fleet.Ref
			for _, y := range x.follow(&f.View, q, now, least) {
				if y != newPlace(y.ref, f.Task(y.ref)) {
					t.Fatalf("seed %d, operation %d: %+v is not task %d", seed, n, y, y.ref)
				}
				got = append(got, y.ref)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, operation %d: %v, the queue has %v", seed, n, got, want)
			}
			if x.first == 0 && before > 0 {
				anew++
			} else {
				kept++
			}
		}
	}
	if kept < anew {
		t.Errorf("read anew %d times, kept %d times", anew, kept)
	}
}

// The first task with so much time left, against a walk.
func TestFirstWith(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		var list []place
		end := serving.Time(0)
		for range rng.IntN(9) {
			end = end.Add(time.Duration(rng.IntN(3)) * time.Second)
			list = append(list, place{end: end})
		}
		seconds := float64(rng.IntN(12))
		want := 0
		for want < len(list) && list[want].left(0) < seconds {
			want++
		}
		if got := firstWith(list, 0, seconds); got != want {
			t.Fatalf("%v, %v s: %d, a walk says %d", list, seconds, got, want)
		}
	}
}
