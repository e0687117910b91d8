package profile

import "github.com/sluice-serving/sluice/serving"

// MeasuredFunc reports whether the latency at exactly this point was measured, rather than interpolated or
// extrapolated.
type MeasuredFunc func(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) bool

// MeasuredPoints returns the function that reports which points of p were measured, or nil if p does not know. A
// Profile made from another one passes on that one's function by a method of this name.
func MeasuredPoints(p Profile) MeasuredFunc {
	if t, ok := p.(interface {
		MeasuredPoints() MeasuredFunc
	}); ok {
		return t.MeasuredPoints()
	}
	return nil
}

// MeasuredPoints returns t.Measured; see the function MeasuredPoints.
func (t *Table) MeasuredPoints() MeasuredFunc {
	return t.Measured
}

// MeasuredPoints returns that of the renumbered profile, with its identifiers translated; see the function
// MeasuredPoints.
func (r Renumbered) MeasuredPoints() MeasuredFunc {
	inner := MeasuredPoints(r.Profile)
	if inner == nil {
		return nil
	}
	return func(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) bool {
		return inner(r.Variants[v], d, items, concurrency)
	}
}
