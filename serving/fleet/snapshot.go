package fleet

import (
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// Snapshot is a copy of the fleet for planners. It stays valid while the fleet changes.
type Snapshot struct {
	Seq       uint64 // number of the request that it was made for
	At        serving.Time
	Instances []InstanceSnapshot // ascending by ID
	// Down lists workers on which starts failed of late; planners do not use them.
	Down []serving.WorkerID
	// Broken lists variants whose load failed of late; planners do not use them.
	Broken []serving.VariantID
}

// InstanceSnapshot is one instance in a Snapshot.
type InstanceSnapshot struct {
	ID         serving.InstanceID
	Key        Key
	DeviceType serving.DeviceTypeID
	Stage      serving.StageID
	State      State
	Slots      int
	Built      int // slots that a plan may give it without a load; 0 means Slots
	Cores      int
	// Accelerator is the index of the accelerator of its worker that the instance has a part of.
	Accelerator int32
	Share       float64
	Variants    []Loaded
	Kept        bool // it drains and stays loaded: a plan may resume it without a load
	Queued      int  // tasks
	Running     int  // batches
}

// Snapshot copies the present state for the request numbered seq. The result shares nothing with the fleet.
func (f *View) Snapshot(seq uint64, now serving.Time) *Snapshot {
	s := &Snapshot{Seq: seq, At: now}
	for _, i := range f.live {
		s.Instances = append(s.Instances, InstanceSnapshot{
			ID: i.id, Key: i.p.Key, DeviceType: i.p.DeviceType, Stage: i.p.Stage, State: i.state, Slots: i.p.Slots,
			Built: i.p.Built, Cores: i.p.Cores, Accelerator: i.p.Accelerator, Share: i.p.Share,
			Variants: slices.Clone(i.p.Variants), Kept: i.warmUntil > 0, Queued: i.queue.n,
			Running: len(i.running),
		})
	}
	return s
}
