package capacity

import (
	"cmp"

	"github.com/sluice-serving/sluice/policy/plan"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
)

// Rates returns the demand to plan for by AppID, in queries/s: the observed rate, at least MinRate, times the
// head-room. A head-room of 0 means 1.
func Rates(r *plan.Request, headroom float64) []float64 {
	out := make([]float64, len(r.Spec.Apps))
	for a := range out {
		out[a] = MinRate
		if a < len(r.Rates) {
			out[a] = max(r.Rates[a], MinRate)
		}
		out[a] *= cmp.Or(headroom, 1)
	}
	return out
}

// UsableWorkers returns by DeviceTypeID the workers that are not down, ascending. down is by WorkerID.
func UsableWorkers(spec *serving.Spec, down []bool) [][]serving.WorkerID {
	out := make([][]serving.WorkerID, len(spec.DeviceTypes))
	for w := range spec.Workers {
		if d := spec.Workers[w].DeviceType; !down[w] {
			out[d] = append(out[d], serving.WorkerID(w))
		}
	}
	return out
}

// TypesOf lists the device types of which there is a worker. workers is the result of UsableWorkers.
func TypesOf(workers [][]serving.WorkerID) (out []serving.DeviceTypeID) {
	for d := range workers {
		if len(workers[d]) > 0 {
			out = append(out, serving.DeviceTypeID(d))
		}
	}
	return out
}

// Reusable returns the instances of a snapshot that run, start, or are kept loaded. A plan can use them without a load.
// A nil snapshot has none.
func Reusable(snapshot *fleet.Snapshot) (out []fleet.InstanceSnapshot) {
	if snapshot == nil {
		return nil
	}
	for _, i := range snapshot.Instances {
		if i.State != fleet.Draining && i.State != fleet.Stopped || i.Kept {
			out = append(out, i)
		}
	}
	return out
}
