package capacity

import (
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Unusable returns, by WorkerID and by VariantID, which workers are down and which variants failed to load. A nil
// snapshot has none.
func Unusable(spec *serving.Spec, snapshot *fleet.Snapshot) (down, broken []bool) {
	down, broken = make([]bool, len(spec.Workers)), make([]bool, len(spec.Variants))
	if snapshot != nil {
		for _, w := range snapshot.Down {
			down[w] = true
		}
		for _, v := range snapshot.Broken {
			broken[v] = true
		}
	}
	return down, broken
}

// RunningByWorker returns the instance that each worker runs by a snapshot, else the one that it keeps loaded. Of
// several instances the one at the first place counts, and there the last: others share the worker because they were
// left out. Draining instances do not count.
func RunningByWorker(snapshot *fleet.Snapshot) map[serving.WorkerID]fleet.InstanceSnapshot {
	out := make(map[serving.WorkerID]fleet.InstanceSnapshot)
	for _, i := range Reusable(snapshot) {
		before, any := out[i.Key.Worker]
		if !any || before.Kept && !i.Kept || before.Kept == i.Kept && i.Key.Ordinal <= before.Key.Ordinal {
			out[i.Key.Worker] = i
		}
	}
	return out
}

// HostedVariant returns the variant that an instance runs, or will run once it is loaded; false when there is none.
func HostedVariant(i fleet.InstanceSnapshot) (serving.VariantID, bool) {
	for _, l := range i.Variants {
		if l.Wanted && !l.Warm {
			return l.Variant, true // it is being loaded
		}
	}
	for _, l := range i.Variants {
		if l.Wanted {
			return l.Variant, true
		}
	}
	return serving.None, false
}
