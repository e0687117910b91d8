package capacity

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/fleet"
	"github.com/sluice-serving/sluice/serving/profile"
)

// SplitWorkers gives every worker that is up to one stage, for planners that load many variants on a worker (RAMSIS
// App. G: each worker belongs to one objective). It returns the workers by StageID, ascending. down and broken are the
// result of Unusable, asked that of StageDemands.
//
// A worker that serves a stage by the snapshot stays with it. Each of the others goes to the stage with the least
// capacity for its demand, where capacity is the rate of the fastest batches within the budget. It fails when a stage
// gets no worker.
func SplitWorkers(believed profile.Profile, spec *serving.Spec, snapshot *fleet.Snapshot, asked []StageDemand, down,
	broken []bool) ([][]serving.WorkerID, error) {
	out := make([][]serving.WorkerID, len(spec.Stages))
	able := make([]float64, len(spec.Stages))
	running := RunningByWorker(snapshot)
	var free []serving.WorkerID
	for w := range spec.Workers {
		id := serving.WorkerID(w)
		if down[w] {
			continue
		}
		if i, ok := running[id]; ok {
			out[i.Stage] = append(out[i.Stage], id)
			able[i.Stage] += bestRate(believed, spec, i.Stage, spec.Workers[w].DeviceType, asked[i.Stage].Budget,
				broken)
			continue
		}
		free = append(free, id)
	}
	for _, w := range free {
		best, least := -1, math.Inf(1)
		for s := range spec.Stages {
			gain := bestRate(believed, spec, serving.StageID(s), spec.Workers[w].DeviceType, asked[s].Budget, broken)
			if gain <= 0 {
				continue
			}
			// A stage's first worker comes before any stage's second.
			share := able[s] / asked[s].Rate
			if len(out[s]) == 0 {
				share = -asked[s].Rate
			}
			if share < least {
				best, least = s, share
			}
		}
		if best < 0 {
			continue // no stage can use it
		}
		out[best] = append(out[best], w)
		able[best] += bestRate(believed, spec, serving.StageID(best), spec.Workers[w].DeviceType, asked[best].Budget,
			broken)
	}
	for s := range out {
		slices.Sort(out[s])
		if len(out[s]) == 0 {
			var devices []serving.DeviceTypeID
			for w := range spec.Workers {
				if !down[w] {
					devices = append(devices, spec.Workers[w].DeviceType)
				}
			}
			if servable(believed, spec, serving.StageID(s), asked[s].Budget, devices, broken) {
				return nil, fmt.Errorf("app %q: no worker is left for stage %q: each serves one stage, %d stages "+
					"share %d workers", spec.Apps[asked[s].App].Name, spec.Stages[s].Name, len(spec.Stages),
					len(devices))
			}
			return nil, Unservable(believed, spec, serving.StageID(s), asked[s], devices, broken)
		}
	}
	return out, nil
}

// servable reports whether some device type serves a stage within a budget.
func servable(believed profile.Profile, spec *serving.Spec, s serving.StageID, within time.Duration,
	devices []serving.DeviceTypeID, broken []bool) bool {
	for _, d := range devices {
		if bestRate(believed, spec, s, d, within, broken) > 0 {
			return true
		}
	}
	return false
}

// bestRate returns the items/s that a worker of a type serves of a stage, in the best batch that takes at most within.
func bestRate(believed profile.Profile, spec *serving.Spec, s serving.StageID, d serving.DeviceTypeID,
	within time.Duration,
	broken []bool) float64 {
	out := 0.0
	for _, v := range spec.Stages[s].Variants {
		if broken[v] || spec.Variants[v].Accuracy < spec.Apps[spec.Stages[s].App].Floor {
			continue
		}
		for b := 1; b <= spec.Variants[v].MaxBatch; b++ {
			l := believed.Latency(v, d, b, 1)
			if l > within {
				break
			}
			out = max(out, float64(b)/l.Seconds())
		}
	}
	return out
}
