package board

import "math"

// Coarser sums series of the same app up, which follow each other in time, into steps of so many seconds. Counts are
// added; accuracies, waits and medians are means over the queries; a 99th percentile is the largest of its step, since
// those of parts do not tell that of the whole.
func Coarser(list []*Series, step int64) *Series {
	out := newSeries()
	out.StepS = int(step)
	var at *part
	for _, s := range list {
		for k := range s.At {
			start := floorTo(s.At[k], step)
			if at == nil || start != at.start {
				out.addPart(at)
				at = &part{start: start, before: len(out.At)}
			}
			at.add(s, k)
		}
	}
	out.addPart(at)
	return out
}

// floorTo rounds down to a multiple of step, also below zero.
func floorTo(x, step int64) int64 {
	return int64(math.Floor(float64(x)/float64(step))) * step
}

// part is a step that is summed up.
type part struct {
	start                                  int64
	before                                 int // steps before it
	offered, served, violations, cancelled uint32
	accuracy, p50, routed, held, run, size mean
	busy                                   mean
	p99                                    *float64
	latency                                counts
	variants                               map[string]uint32
	dollars                                float64
}

// mean is a weighted mean that grows.
type mean struct{ sum, weight float64 }

func (m *mean) add(x *float64, weight float64) {
	if x != nil {
		m.sum += *x * weight
		m.weight += weight
	}
}

func (p *part) add(s *Series, k int) {
	p.offered += s.Offered[k]
	p.served += s.Served[k]
	p.violations += s.Violations[k]
	p.cancelled += s.Cancelled[k]
	queries := math.Max(1, float64(s.Served[k]))
	p.accuracy.add(s.Accuracy[k], queries)
	p.p50.add(s.P50[k], queries)
	p.routed.add(s.Routed[k], queries)
	p.held.add(s.Held[k], queries)
	p.run.add(s.Run[k], queries)
	p.size.add(s.MeanBatch[k], queries)
	p.busy.add(s.Busy[k], 1)
	if x := s.P99[k]; x != nil && (p.p99 == nil || *x > *p.p99) {
		p.p99 = x
	}
	for b := 0; b+1 < len(s.Latency[k]); b += 2 {
		if at := s.Latency[k][b]; at < Buckets {
			p.latency.latency[at] += s.Latency[k][b+1]
		}
	}
	if p.variants == nil {
		p.variants = make(map[string]uint32)
	}
	for name, list := range s.Variants {
		if k < len(list) {
			p.variants[name] += list[k]
		}
	}
	p.dollars += s.Dollars[k]
}

func (s *Series) addPart(p *part) {
	if p == nil {
		return
	}
	s.At = append(s.At, p.start)
	s.Offered = append(s.Offered, p.offered)
	s.Served = append(s.Served, p.served)
	s.Violations = append(s.Violations, p.violations)
	s.Cancelled = append(s.Cancelled, p.cancelled)
	s.Accuracy = append(s.Accuracy, ratio(p.accuracy.sum, p.accuracy.weight))
	s.P50 = append(s.P50, ratio(p.p50.sum, p.p50.weight))
	s.P99 = append(s.P99, p.p99)
	s.Routed = append(s.Routed, ratio(p.routed.sum, p.routed.weight))
	s.Held = append(s.Held, ratio(p.held.sum, p.held.weight))
	s.Run = append(s.Run, ratio(p.run.sum, p.run.weight))
	s.MeanBatch = append(s.MeanBatch, ratio(p.size.sum, p.size.weight))
	s.Latency = append(s.Latency, sparse(&p.latency))
	s.Dollars = append(s.Dollars, rounded(p.dollars))
	s.Busy = append(s.Busy, ratio(p.busy.sum, p.busy.weight))
	for name, n := range p.variants {
		list := s.Variants[name]
		for len(list) < p.before { // it was not there before
			list = append(list, 0)
		}
		s.Variants[name] = append(list, n)
	}
	for name, list := range s.Variants {
		if len(list) <= p.before { // it has gone
			s.Variants[name] = append(list, 0)
		}
	}
}

// WellFormed reports whether all lists of a series that was read have the length of At.
func (s *Series) WellFormed() bool {
	n := len(s.At)
	for _, k := range []int{len(s.Offered), len(s.Served), len(s.Violations), len(s.Cancelled), len(s.Accuracy),
		len(s.P50), len(s.P99), len(s.Routed), len(s.Held), len(s.Run), len(s.MeanBatch), len(s.Latency),
		len(s.Dollars), len(s.Busy)} {
		if k != n {
			return false
		}
	}
	return true
}
