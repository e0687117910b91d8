package fleet

import (
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// Snapshot is a copy of what planners may know of the fleet: plain data that stays valid while the fleet moves on.
type Snapshot struct {
	Seq       uint64 // of the request it was made for
	At        serving.Time
	Instances []InstanceSnapshot // ascending by ID
	// Down lists workers on which nothing could be started of late; planners leave them out.
	Down []serving.WorkerID
	// Broken lists variants that could not be loaded of late; planners leave them out.
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
	Built      int // slots that a plan may want of it without a load; 0 means Slots
	Cores      int
	// Accelerator says which of its worker's accelerators the instance has a part of, from 0.
	Accelerator int32
	Share       float64
	Variants    []Loaded
	Kept        bool // it drains and stays loaded: a plan that wants it there takes it up without a load
	Queued      int  // tasks
	Running     int  // batches
}

// Snapshot copies the present state, for the request with a number. Nothing of it is shared with the fleet.
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
