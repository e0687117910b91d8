package capacity

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

const (
	// maxSlots is how many batches at once are looked at where nobody has written how many.
	maxSlots = 16
	// payingGain is what a further batch at once must add to the rate: 2 %, the rule of 'sluice profile'.
	payingGain = 1.02
)

// PayingSlots returns how many batches of a variant at once carry most on a device type, each within the given time; at
// least 1. Only what was measured counts: it is 1 where measured is nil, or has only batches that run alone.
func PayingSlots(measured profile.MeasuredFunc, believed profile.Profile, spec *serving.Spec, v serving.VariantID,
	d serving.DeviceTypeID, within time.Duration) int {
	best, most := 1, 0.0
	if measured == nil || v < 0 || int(v) >= len(spec.Variants) {
		return best
	}
	for n := 1; n <= maxSlots && (n == 1 || measured(v, d, 1, n)); n++ {
		limit := profile.BatchLimit(believed, spec, v, d, n, within)
		if limit == 0 {
			break
		}
		rate := float64(n*limit) / believed.Latency(v, d, limit, n).Seconds()
		if rate > payingGain*most {
			best, most = n, rate
		}
	}
	return best
}
