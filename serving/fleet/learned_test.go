package fleet

import (
	"testing"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// learned is a fleet of one instance whose latency is learned, with n tasks that wait centrally.
func learned(n int) (*Fleet, *Instance, *profile.Learned) {
	spec := &serving.Spec{
		DeviceTypes: make([]serving.DeviceType, 1), Workers: make([]serving.Worker, 1),
		Apps:   []serving.App{{SLO: serving.SLO{Latency: time.Second}, Stages: []serving.StageID{0}}},
		Stages: []serving.Stage{{Variants: []serving.VariantID{0}}}, Variants: []serving.Variant{{MaxBatch: 8}},
	}
	l := profile.NewLearned(spec, nil)
	f := New(spec, l)
	i := f.Launch(Placement{Terms: Terms{Slots: 1}, Variants: []Loaded{{Limit: 8, Wanted: true}}}, 0)
	f.Warm(i, 0)
	for k := range n {
		f.Wait(f.Add(&Work{Query: serving.QueryID(k + 1), Items: 1, Deadline: 1e9, Pin: serving.None}))
	}
	return f, i, l
}

// A batch that should long have ended by a guessed belief is believed to take as long again.
func TestBacklogWithAnOverdueBatch(t *testing.T) {
	f, i, _ := learned(1)
	f.Assign(f.Central(0).Head(), i, 0)
	one := f.Backlog(i, 0, 0)
	f.Start(i, 1, 0, 1, 0, one)
	if b := i.Batch(0); b.Concurrency != 1 || one > time.Millisecond {
		t.Fatalf("%+v, expected %v", b, one)
	}
	if got := f.Backlog(i, 3e8, 1); got != 300*time.Millisecond+one {
		t.Errorf("300 ms after a batch of %v began, another is believed to end in %v", one, got)
	}
}

// A changed profile changes when waiting tasks are dropped, in every place. A probe's time stays.
func TestProfileChanged(t *testing.T) {
	f, i, l := learned(2)
	f.Assign(f.Central(0).Head(), i, 0)
	for range 5 {
		l.Observe(0, 0, 1, 1, 200*time.Millisecond)
	}
	f.ProfileChanged()
	if at := f.EarliestDrop(f.Central(0)); at != 8e8 {
		t.Errorf("at the stage dropped from %v", at)
	}
	if at := f.EarliestDrop(i.Queue()); at != 8e8 {
		t.Errorf("on the instance dropped from %v", at)
	}
	f.Probe(f.Central(0).Head())
	f.ProfileChanged()
	if at := f.EarliestDrop(f.Central(0)); at != 1e9 {
		t.Errorf("a probe, and dropped from %v", at)
	}
	if err := f.Check(); err != nil {
		t.Error(err)
	}
}
