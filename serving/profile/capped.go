package profile

import (
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// Cell is a variant on a device type.
type Cell struct {
	Variant    serving.VariantID
	DeviceType serving.DeviceTypeID
}

// Capped is a Profile in which batches above a limit are Unknown, so that no plan has them: the device type lacks the
// memory for them.
type Capped struct {
	Profile
	Most map[Cell]int // items; cells that it lacks have no limit. It must not change any more.
}

// Latency implements Profile.
func (p Capped) Latency(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) time.Duration {
	if most, ok := p.Most[Cell{v, d}]; ok && items > most {
		return Unknown
	}
	return p.Profile.Latency(v, d, items, concurrency)
}

// MeasuredPoints returns that of the profile that is capped, without the points above the limits; see the function
// MeasuredPoints.
func (p Capped) MeasuredPoints() MeasuredFunc {
	inner := MeasuredPoints(p.Profile)
	if inner == nil {
		return nil
	}
	return func(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) bool {
		most, ok := p.Most[Cell{v, d}]
		return (!ok || items <= most) && inner(v, d, items, concurrency)
	}
}
