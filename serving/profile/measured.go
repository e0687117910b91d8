package profile

import "github.com/sluice-serving/sluice/serving"

// MeasuredFunc reports whether the latency at exactly this point was measured, rather than interpolated or
// extrapolated.
type MeasuredFunc func(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) bool

// MeasuredPoints returns the function that tells which points of p were measured, or nil where p cannot tell. A Profile
// made from another one answers for it by a method of this name.
func MeasuredPoints(p Profile) MeasuredFunc {
	if t, ok := p.(interface {
		MeasuredPoints() MeasuredFunc
	}); ok {
		return t.MeasuredPoints()
	}
	return nil
}

// MeasuredPoints returns Measured; see the function MeasuredPoints.
func (t *Table) MeasuredPoints() MeasuredFunc {
	return t.Measured
}

// MeasuredPoints answers for the profile underneath; see the function MeasuredPoints.
func (r Renumbered) MeasuredPoints() MeasuredFunc {
	inner := MeasuredPoints(r.Profile)
	if inner == nil {
		return nil
	}
	return func(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) bool {
		return inner(r.Variants[v], d, items, concurrency)
	}
}
