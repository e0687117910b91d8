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

// Split gives every worker that is not down to one stage, for planners that load many variants on a worker (RAMSIS App.
// G: each worker belongs to one objective). Who serves a stage by the snapshot goes on serving it; the others go, one
// after the other, to the stage that then has least for what is asked of it, counting what each serves a second with
// its fastest batches in time. It returns the workers by stage, ascending.
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
			able[i.Stage] += bestRate(believed, spec, i.Stage, spec.Workers[w].DeviceType, asked[i.Stage].Budget, broken)
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
			// Nobody's first worker comes before anybody's second.
			share := able[s] / asked[s].Rate
			if len(out[s]) == 0 {
				share = -asked[s].Rate
			}
			if share < least {
				best, least = s, share
			}
		}
		if best < 0 {
			continue // of no use to anybody
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

func servable(believed profile.Profile, spec *serving.Spec, s serving.StageID, within time.Duration,
	devices []serving.DeviceTypeID, broken []bool) bool {
	for _, d := range devices {
		if bestRate(believed, spec, s, d, within, broken) > 0 {
			return true
		}
	}
	return false
}

// most is what a worker of a type serves a second of a stage, in the batch within the time that serves most.
func bestRate(believed profile.Profile, spec *serving.Spec, s serving.StageID, d serving.DeviceTypeID, within time.Duration,
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
