package serving

import "slices"

// WithFanOuts returns a copy of s with other fan-outs, such as observed ones. fans is by StageID, then in the order of
// Stage.Next. A stage for which it has no entry, or an empty one, keeps its fan-outs. The copy shares everything but
// its stages with s.
func (s *Spec) WithFanOuts(fans [][]float64) *Spec {
	c := *s
	c.Stages = slices.Clone(s.Stages)
	for i := range min(len(fans), len(c.Stages)) {
		if len(fans[i]) == 0 {
			continue
		}
		c.Stages[i].Next = slices.Clone(s.Stages[i].Next)
		for k := range min(len(fans[i]), len(c.Stages[i].Next)) {
			c.Stages[i].Next[k].FanOut = fans[i][k]
		}
	}
	return &c
}

// EqualButFanOuts reports whether s and other differ in fan-outs at most, because one was made from the other by
// WithFanOuts. It compares memory, not content: two specs with equal tables of their own are different to it.
func (s *Spec) EqualButFanOuts(other *Spec) bool {
	if s == other {
		return true
	}
	return s != nil && other != nil && sameMemory(s.Apps, other.Apps) && sameMemory(s.Variants, other.Variants) &&
		sameMemory(s.Workers, other.Workers) &&
		sameMemory(s.DeviceTypes, other.DeviceTypes) && len(s.Stages) == len(other.Stages)
}

// sameMemory reports whether two slices are the same memory.
func sameMemory[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
