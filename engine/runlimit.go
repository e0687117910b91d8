package engine

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// The time after which the instance of a batch that has not ended counts as lost.
const (
	runFactor    = 10 // times the believed time, which is a high percentile
	leastRun     = time.Second
	unknownLimit = time.Minute // where there is no belief
)

// RunLimit returns how long the batch of a StartBatch may run until a driver reports its instance lost: by the belief
// about it, and at least as long as its queries may take.
func RunLimit(spec *serving.Spec, d *Decision) time.Duration {
	if d.Expected <= 0 || d.Expected >= profile.Unknown {
		return unknownLimit
	}
	return max(runFactor*d.Expected, spec.Apps[spec.Stages[d.Stage].App].SLO.Latency, leastRun)
}
