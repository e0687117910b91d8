package profile

import "github.com/sluice-serving/sluice/serving"

// Tells returns what tells of a point whether its latency was measured, rather than interpolated or extrapolated; nil
// where a profile cannot tell. A Profile made of another answers for it by a method of this name.
func MeasuredPoints(p Profile) func(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) bool {
	if t, ok := p.(interface {
		MeasuredPoints() func(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) bool
	}); ok {
		return t.MeasuredPoints()
	}
	return nil
}

// Tells is for the function Tells.
func (t *Table) MeasuredPoints() func(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) bool {
	return t.Measured
}

// Tells is for the function Tells.
func (r Renumbered) MeasuredPoints() func(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) bool {
	inner := MeasuredPoints(r.Profile)
	if inner == nil {
		return nil
	}
	return func(v serving.VariantID, d serving.DeviceTypeID, items, concurrency int) bool {
		return inner(r.Variants[v], d, items, concurrency)
	}
}
