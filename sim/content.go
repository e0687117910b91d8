package sim

import (
	"time"

	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/sim/truth"
)

// ran returns how long a batch takes and what it sends, by what is in its queries: the run time balloons by the mean
// over its items.
func (s *simulation) ran(d *engine.Decision, took time.Duration) (time.Duration, []int32) {
	if s.Content == nil {
		return took, nil
	}
	edges := s.Spec.Stages[d.Stage].Next
	sent := make([]int32, 0, len(d.Tasks)*len(edges))
	balloon := 0.0
	for i := range d.Tasks {
		p := &d.Tasks[i]
		f := s.frames[p.Query]
		balloon += float64(p.Items) * f.Balloon(d.Stage)
		for k := range edges {
			sent = append(sent, truth.ItemsSent(f, d.Stage, k, p.Offset, p.Items))
		}
	}
	return truth.Ballooned(took, balloon/float64(d.Items)), sent
}
