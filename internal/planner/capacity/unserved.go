package capacity

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/internal/measure/quantity"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/serving/profile"
)

// Asked is what a stage asks of a variant that is to serve it.
type Asked struct {
	Stage  serving.StageID
	Budget time.Duration // the stage's part of the objective
	Items  int           // of the smallest queries; 0 means 1
	// Fraction of the budget that these items may take, above 0.
	Fraction float64
}

// Unserved returns an error that says why no variant serves a stage on any of the device types, and the least change
// that mends it: a longer objective, a lower floor or more memory, whichever changes its number by the least factor. A
// variant that failed to load counts for nothing; broken is by VariantID. It must be true that none serves it.
func Unserved(believed profile.Profile, spec *serving.Spec, ask Asked, devices []serving.DeviceTypeID,
	broken []bool) error {
	app := &spec.Apps[spec.Stages[ask.Stage].App]
	if len(devices) == 0 {
		return fmt.Errorf("app %q: no worker is left to plan for: all %d are down", app.Name, len(spec.Workers))
	}
	within := time.Duration(ask.Fraction * float64(ask.Budget))
	stages := math.Round(float64(app.SLO.Latency-app.Slack) / max(float64(ask.Budget), 1))
	items, count := max(ask.Items, 1), "one item"
	if items > 1 {
		count = fmt.Sprintf("%d items, as the smallest queries bring", items)
	}
	fastest, what, largest := profile.Unknown, "", 0
	remedy, least := "", math.Inf(1)
	note := func(factor float64, format string, args ...any) {
		if factor < least {
			remedy, least = fmt.Sprintf(format, args...), factor
		}
	}
	for _, v := range spec.Stages[ask.Stage].Variants {
		x := &spec.Variants[v]
		for _, d := range devices {
			if broken[v] || x.Retired || believed.Latency(v, d, 1, 1) >= profile.Unknown {
				continue
			}
			largest = max(largest, x.MaxBatch)
			took := believed.Latency(v, d, items, 1)
			if items > x.MaxBatch || took >= profile.Unknown {
				continue
			}
			device := &spec.DeviceTypes[d]
			if took < fastest {
				fastest = took
				what = fmt.Sprintf("%q on %q takes %v for %s", x.Name, device.Name, short(took), count)
			}
			need := x.MemoryBytes + int64(items)*x.ItemBytes
			large := device.MemoryBytes > 0 && need > device.MemoryBytes
			late, inaccurate := took > within, x.Accuracy < app.Floor
			switch {
			case late && !large && !inaccurate:
				slo := time.Duration(math.Ceil(float64(took)/ask.Fraction*stages)) + app.Slack
				if ask.Fraction < 1 {
					slo++ // such a batch must take less than its part: see BatchRule.Capacity
				}
				slo = (slo + time.Millisecond - 1).Truncate(time.Millisecond)
				note(float64(slo)/float64(app.SLO.Latency), "slo.latency of %v for app %q (now %v)", slo, app.Name,
					app.SLO.Latency)
			case inaccurate && !large && !late:
				note(app.Floor/max(x.Accuracy, 1e-9), "accuracy_floor of %v for app %q (now %v)", x.Accuracy, app.Name,
					app.Floor)
			case large && !late && !inaccurate:
				note(float64(need)/float64(device.MemoryBytes), "memory of %s for device type %q (now %s)",
					quantity.Bytes(need), device.Name, quantity.Bytes(device.MemoryBytes))
			}
		}
	}
	if what == "" && largest > 0 {
		return fmt.Errorf("app %q: the smallest queries bring %d items, and no variant of stage %q takes more than "+
			"%d at once. The least change that mends it is a max_batch of %d for one of them", app.Name, items,
			spec.Stages[ask.Stage].Name, largest, items)
	}
	if what == "" {
		return fmt.Errorf("app %q: no variant of stage %q can be planned for: none of them was measured on these "+
			"workers, or all failed to load: run 'sluice profile'", app.Name, spec.Stages[ask.Stage].Name)
	}
	conditions := fmt.Sprintf("the stage's part of the SLO is %v", short(within))
	if ask.Fraction == defaultFraction {
		conditions = "half of " + conditions
	}
	if app.Floor > 0 {
		conditions += fmt.Sprintf(" and accuracy_floor is %v", app.Floor)
	}
	return fmt.Errorf("app %q: no variant of stage %q meets the objective on any worker: the fastest, %s; %s. The "+
		"least change that mends it is %s", app.Name, spec.Stages[ask.Stage].Name, what, conditions,
		cmp.Or(remedy, "a faster variant or device type"))
}

// Unservable is Unserved for a stage of which a batch may take half of its budget (Proteus §4).
func Unservable(believed profile.Profile, spec *serving.Spec, s serving.StageID, asked StageDemand,
	devices []serving.DeviceTypeID, broken []bool) error {
	return Unserved(believed, spec, Asked{Stage: s, Budget: asked.Budget, Fraction: defaultFraction}, devices, broken)
}

func short(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
