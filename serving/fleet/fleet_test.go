package fleet

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

func newFleet() *Fleet {
	spec := &serving.Spec{
		Apps: []serving.App{{}}, DeviceTypes: []serving.DeviceType{{}}, Stages: []serving.Stage{{}},
		Variants: []serving.Variant{{Accuracy: 0.9, MaxBatch: 64}, {Accuracy: 0.7, MaxBatch: 64}},
	}
	return New(spec, profile.Constant{Base: 10 * time.Millisecond, PerItem: time.Millisecond})
}

// A queue against a sorted slice, through random pushes and removals with mixed priorities, deadlines and items.
func TestQueueAgainstSortedSlice(t *testing.T) {
	for seed := uint64(1); seed <= 30; seed++ {
		rng := rand.New(rand.NewPCG(seed, 3))
		f := newFleet()
		mixed := seed%2 == 0
		var want []Ref
		less := func(a, b Ref) int {
			if before(f.Task(a), f.Task(b)) {
				return -1
			}
			return 1
		}
		for n := 1; n < 400; n++ {
			if len(want) > 0 && rng.IntN(3) == 0 {
				at := rng.IntN(len(want))
				f.Dequeue(want[at])
				f.Release(want[at])
				want = slices.Delete(want, at, at+1)
			} else {
				work := Work{
					Query: serving.QueryID(n), Items: 1, Pin: serving.None,
					Deadline: serving.Time(rng.IntN(1000)) * 1e6,
				}
				if mixed {
					work.Items = int32(1 + rng.IntN(5))
					work.Priority = int32(rng.IntN(3))
				}
				r := f.Add(&work)
				f.Wait(r)
				want = append(want, r)
				slices.SortFunc(want, less)
			}
			var got []Ref
			earliest := serving.Never
			items := 0
			for r := f.Central(0).Head(); r != Nil; r = f.Next(r) {
				got = append(got, r)
				earliest = min(earliest, f.Task(r).DropAt())
				items += f.Task(r).Items()
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, operation %d: %v, sorted %v", seed, n, got, want)
			}
			if q := f.Central(0); f.EarliestDrop(q) != earliest || q.Items() != items {
				t.Fatalf("seed %d, operation %d: earliest drop %v, a scan says %v", seed, n, f.EarliestDrop(q),
					earliest)
			}
			if err := f.Check(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Check finds planted corruption; otherwise the invariant tests prove nothing.
func TestCheckFindsCorruption(t *testing.T) {
	for name, spoil := range map[string]func(f *Fleet, i *Instance){
		"a counter": func(f *Fleet, i *Instance) { i.queue.items++ },
		"a lost task": func(f *Fleet, i *Instance) {
			i.queue.head, i.queue.tail, i.queue.n, i.queue.items = Nil, Nil, 0, 0
		},
		"a wrong place":           func(f *Fleet, i *Instance) { f.Task(i.queue.head).place = Running },
		"a slot too many":         func(f *Fleet, i *Instance) { i.p.Built = 0 },
		"an order":                func(f *Fleet, i *Instance) { f.Task(i.queue.head).w.Deadline = serving.Never },
		"an unusable variant":     func(f *Fleet, i *Instance) { i.p.Variants[0].Wanted = false },
		"a task in two places":    func(f *Fleet, i *Instance) { i.running[0].Head = i.queue.head },
		"a ready instance":        func(f *Fleet, i *Instance) { f.ready[0] = nil },
		"one that is ready twice": func(f *Fleet, i *Instance) { f.ready[0] = append(f.ready[0], i) },
		"a kind":                  func(f *Fleet, i *Instance) { f.kinds[0] = nil },
		"a kind's instances":      func(f *Fleet, i *Instance) { f.kinds[0][0].instances++ },
		"a kind twice":            func(f *Fleet, i *Instance) { f.kinds[0] = append(f.kinds[0], f.kinds[0][0]) },
	} {
		f := newFleet()
		i := f.Launch(Placement{Terms: Terms{Slots: 1}, Variants: []Loaded{{Limit: 8, Wanted: true}}}, 0)
		f.Warm(i, 0)
		for q := range 4 {
			r := f.Add(&Work{Query: serving.QueryID(q + 1), Items: 1, Pin: serving.None, Deadline: 1e9})
			f.Wait(r)
			f.Assign(r, i, 0)
		}
		f.Start(i, 1, 0, 2, 0, time.Millisecond)
		if err := f.Check(); err != nil {
			t.Fatal(err)
		}
		spoil(f, i)
		if f.Check() == nil {
			t.Errorf("%s: the corruption was not found", name)
		}
	}
}

func TestChoose(t *testing.T) {
	f := newFleet()
	i := f.Launch(Placement{
		Terms:    Terms{Slots: 1},
		Variants: []Loaded{{Variant: 0, Limit: 4, Wanted: true}, {Variant: 1, Limit: 16, Wanted: true}},
	}, 0)
	if f.CanServe(i, f.Task(f.Add(&Work{Items: 1, Pin: serving.None}))) {
		t.Error("an instance without a warm variant can serve nothing")
	}
	f.Warm(i, 0)
	f.Warm(i, 1)
	for _, c := range []struct {
		name string
		work Work
		want int
	}{
		{"the active one", Work{Items: 1, Pin: serving.None}, 0},
		{"the pinned one", Work{Items: 1, Pin: 1}, 1},
		{"the one that is accurate enough", Work{Items: 1, Pin: serving.None, MinAccuracy: 0.8}, 0},
		{"the one that takes so many items", Work{Items: 9, Pin: serving.None}, 1},
		{"none is accurate enough", Work{Items: 1, Pin: serving.None, MinAccuracy: 0.95}, -1},
		{"none takes so many items", Work{Items: 17, Pin: serving.None}, -1},
	} {
		if got := f.ChooseFor(i, &c.work); got != c.want {
			t.Errorf("%s: %d for the work, want %d", c.name, got, c.want)
		}
		if got := f.Choose(i, f.Task(f.Add(&c.work))); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// Where queries run unbatched, a backlog is the sum of their own times. Otherwise they share batches.
func TestBacklogOfUnbatchedQueries(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for _, unbatched := range []bool{true, false} {
		f := newFleet() // 10 ms and 1 ms an item
		if unbatched {
			f.SetUnbatched()
		}
		i := f.Launch(Placement{Terms: Terms{Slots: 1}, Variants: []Loaded{{Limit: 64, Wanted: true}}}, 0)
		f.Warm(i, 0)
		var refs []Ref
		for n := range 200 {
			if len(refs) > 0 && rng.IntN(3) == 0 {
				at := rng.IntN(len(refs))
				f.Dequeue(refs[at])
				if rng.IntN(2) == 0 {
					f.Wait(refs[at])
					f.Dequeue(refs[at])
				}
				f.Release(refs[at])
				refs = slices.Delete(refs, at, at+1)
			} else {
				r := f.Add(&Work{Query: serving.QueryID(n + 1), Items: int32(1 + rng.IntN(60)), Pin: serving.None})
				f.Wait(r)
				f.Assign(r, i, 0)
				refs = append(refs, r)
			}
			f.Refresh(i)
			items := 7
			for _, r := range refs {
				items += f.Task(r).Items()
			}
			batches := len(refs) + 1
			if !unbatched {
				batches = (items + 63) / 64
			}
			want := time.Duration(10*batches+items) * time.Millisecond
			if got := f.Backlog(i, 0, 7); got != want {
				t.Fatalf("unbatched %v, operation %d: %v, want %v", unbatched, n, got, want)
			}
			if err := f.Check(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
