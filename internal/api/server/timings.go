package server

import (
	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip"
)

// stageTimings are the response parameters with the times of a query at each stage.
func stageTimings(stages []dataplane.StageTime) []oip.Param {
	out := make([]oip.Param, 0, 6*len(stages))
	for k := range stages {
		s := &stages[k]
		name := "stage." + s.Stage + "."
		out = append(out, oip.Param{Name: name + "variant", Value: s.Variant},
			oip.Param{
				Name: name + "items", Value: int64(s.Items),
			}, oip.Param{Name: name + "batch", Value: int64(s.Batch)},
			oip.Param{Name: name + "ready_us", Value: s.Ready.Microseconds()},
			oip.Param{Name: name + "queue_us", Value: s.Queue.Microseconds()}, oip.Param{
				Name: name + "run_us", Value: s.Run.Microseconds(),
			})
		if s.Length > 0 {
			out = append(out, oip.Param{Name: name + "length", Value: int64(s.Length)})
		}
	}
	return out
}
