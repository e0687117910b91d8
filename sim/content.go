package sim

import (
	"slices"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/sim/truth"
)

// lengthAt returns the length of a query's items at a stage; 0 where it is not known.
func (s *simulation) lengthAt(q serving.QueryID, at serving.StageID) int32 {
	if at == s.Spec.Source(s.Spec.Stages[at].App) {
		return s.lengths[q]
	}
	if f, ok := s.frames[q].(truth.Lengthy); ok {
		return f.Length(at)
	}
	return 0
}

// knowsLengths reports whether a batch's stage knows lengths: the first does, a later one where one is known.
func (s *simulation) knowsLengths(d *engine.Decision) bool {
	return d.Stage == s.Spec.Source(s.Spec.Stages[d.Stage].App) ||
		slices.ContainsFunc(d.Tasks, func(x engine.Task) bool { return s.lengthAt(x.Query, d.Stage) > 0 })
}

// contents returns by how much a batch takes longer and what it sends, by what is in its queries: the run time balloons
// by the mean over its items.
func (s *simulation) contents(d *engine.Decision) (balloon float64, sent, lengths []int32) {
	if s.Content == nil {
		return 1, nil, nil
	}
	edges := s.Spec.Stages[d.Stage].Next
	sent = make([]int32, 0, len(d.Tasks)*len(edges))
	for i := range d.Tasks {
		p := &d.Tasks[i]
		f := s.frames[p.Query]
		balloon += float64(p.Items) * f.Balloon(d.Stage)
		for k := range edges {
			sent = append(sent, truth.ItemsSent(f, d.Stage, k, p.Offset, p.Items))
			if s.machines.long != nil {
				lengths = append(lengths, s.lengthAt(p.Query, edges[k].To))
			}
		}
	}
	return balloon / float64(d.Items), sent, lengths
}

// confidences returns how sure a batch's variant is of its answers; nil where that was not measured, or does not count.
func (s *simulation) confidences(d *engine.Decision) (sure []float32) {
	c := s.Spec.Stages[d.Stage].Confidence(d.Variant)
	if c == nil || !s.Engine.SecondAnswers() {
		return nil
	}
	for k := range d.Tasks {
		for item := range d.Tasks[k].Items {
			sure = append(sure, truth.Confidence(c, s.numbers[d.Tasks[k].Query], d.Tasks[k].Offset+item))
		}
	}
	return sure
}
