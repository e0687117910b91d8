package workload

import "container/heap"

type head struct {
	a     Arrival
	src   Source
	order int
}

type merged []head

// Merge returns a source with the arrivals of all sources in order of time. Arrivals at the same instant are in the
// order of their apps, then in that of the sources. The sources must not be used elsewhere.
func Merge(sources ...Source) Source {
	if len(sources) == 1 {
		return sources[0]
	}
	m := make(merged, 0, len(sources))
	for i, s := range sources {
		if a, ok := s.Next(); ok {
			m = append(m, head{a: a, src: s, order: i})
		}
	}
	heap.Init(&m)
	return &m
}

// Next implements Source.
func (m *merged) Next() (Arrival, bool) {
	if len(*m) == 0 {
		return Arrival{}, false
	}
	h := &(*m)[0]
	out := h.a
	if a, ok := h.src.Next(); ok {
		h.a = a
		heap.Fix(m, 0)
	} else {
		last := len(*m) - 1
		(*m)[0] = (*m)[last]
		(*m)[last] = head{}
		*m = (*m)[:last]
		if last > 1 {
			heap.Fix(m, 0)
		}
	}
	return out, true
}

func (m *merged) Len() int { return len(*m) }
func (m *merged) Less(i, j int) bool {
	a, b := &(*m)[i], &(*m)[j]
	if a.a.At != b.a.At {
		return a.a.At < b.a.At
	}
	if a.a.App != b.a.App {
		return a.a.App < b.a.App
	}
	return a.order < b.order
}
func (m *merged) Swap(i, j int) { (*m)[i], (*m)[j] = (*m)[j], (*m)[i] }
func (m *merged) Push(x any)    { *m = append(*m, x.(head)) }
func (m *merged) Pop() any {
	last := len(*m) - 1
	h := (*m)[last]
	*m = (*m)[:last]
	return h
}
