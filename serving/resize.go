package serving

import (
	"fmt"
	"slices"
)

// Resized returns a copy of s with change[d] more workers of every device type d, fewer where it is negative. The last
// workers of a type are removed first. moved is by WorkerID of s: the worker's identifier in the copy, or None when it
// is gone. Resized fails when more workers are removed than there are, and for a device type that is a part of a
// machine. The copy shares everything but its workers with s.
func (s *Spec) Resized(change []int) (out *Spec, moved []WorkerID, err error) {
	left := make([]int, len(s.DeviceTypes))
	for _, w := range s.Workers {
		left[w.DeviceType]++
	}
	for d, n := range change {
		if n != 0 && s.DeviceTypes[d].Part {
			return nil, nil, fmt.Errorf("device type %q is a part of a machine: no worker is of it",
				s.DeviceTypes[d].Name)
		}
		if left[d] += n; left[d] < 0 {
			return nil, nil, fmt.Errorf("%d workers of device type %q cannot go: there are %d", -n,
				s.DeviceTypes[d].Name, left[d]-n)
		}
	}
	c := *s
	c.Workers = nil
	moved = make([]WorkerID, len(s.Workers))
	for w, x := range s.Workers {
		moved[w] = None
		if left[x.DeviceType] > 0 {
			left[x.DeviceType]--
			moved[w] = WorkerID(len(c.Workers))
			c.Workers = append(c.Workers, x)
		}
	}
	for d, n := range left {
		name := s.DeviceTypes[d].Name + "-new"
		for slices.ContainsFunc(s.Workers, func(w Worker) bool { return w.Name == name+"-0" }) {
			name += "-new"
		}
		for k := range n {
			c.Workers = append(c.Workers, Worker{Name: fmt.Sprintf("%s-%d", name, k), DeviceType: DeviceTypeID(d)})
		}
	}
	return &c, moved, nil
}

// WithWorkers returns a copy of s with counts[d] workers of every device type d in the place of its own. The workers of
// type T are called T-0, T-1 and so on, in the order of the types. The copy shares everything else with s.
func (s *Spec) WithWorkers(counts []int) *Spec {
	c := *s
	c.Workers = nil
	for d, n := range counts {
		for k := range n {
			c.Workers = append(c.Workers, Worker{
				Name: fmt.Sprintf("%s-%d", s.DeviceTypes[d].Name, k), DeviceType: DeviceTypeID(d),
			})
		}
	}
	return &c
}
