package fleet

import "github.com/sluice-serving/sluice/serving"

// Snapshot is a copy of what planners may know of the fleet: plain data that stays valid while the fleet moves on.
type Snapshot struct {
	Seq       uint64 // of the request it was made for
	At        serving.Time
	Instances []InstanceSnapshot
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

// Snapshot copies the present state.
func (f *Fleet) Snapshot(seq uint64, now serving.Time) *Snapshot {
	s := &Snapshot{Seq: seq, At: now}
	for _, i := range f.live {
		s.Instances = append(s.Instances, InstanceSnapshot{
			ID: i.ID, Key: i.Key, DeviceType: i.DeviceType, Stage: i.Stage, State: i.State, Slots: i.Slots,
			Built: i.Built, Cores: i.Cores, Accelerator: i.Accelerator,
			Share: i.Share, Variants: append([]Loaded(nil), i.Variants...), Kept: i.Kept > 0, Queued: i.Queue.n,
			Running: len(i.Running),
		})
	}
	return s
}
