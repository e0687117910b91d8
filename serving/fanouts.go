package serving

import "slices"

// WithFans returns s with other fan-outs, by stage in the order of Stage.Next: those that were observed. Stages that
// fans leaves out keep theirs. Everything but the stages is shared with s.
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

// Fanned tells whether s and other are the same world but for fan-outs: one was made of the other by WithFans.
func (s *Spec) EqualButFanOuts(other *Spec) bool {
	if s == other {
		return true
	}
	return s != nil && other != nil && sameMemory(s.Apps, other.Apps) && sameMemory(s.Variants, other.Variants) &&
		sameMemory(s.Workers, other.Workers) &&
		sameMemory(s.DeviceTypes, other.DeviceTypes) && len(s.Stages) == len(other.Stages)
}

// same tells whether two slices are the same memory.
func sameMemory[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
