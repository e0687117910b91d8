package sim

import (
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/sim/truth"
)

// contents returns by how much a batch takes longer and what it sends, by what is in its queries: the run time balloons
// by the mean over its items.
func (s *simulation) contents(d *engine.Decision) (balloon float64, sent []int32) {
	if s.Content == nil {
		return 1, nil
	}
	edges := s.Spec.Stages[d.Stage].Next
	sent = make([]int32, 0, len(d.Tasks)*len(edges))
	for i := range d.Tasks {
		p := &d.Tasks[i]
		f := s.frames[p.Query]
		balloon += float64(p.Items) * f.Balloon(d.Stage)
		for k := range edges {
			sent = append(sent, truth.ItemsSent(f, d.Stage, k, p.Offset, p.Items))
		}
	}
	return balloon / float64(d.Items), sent
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
