package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/sluice-serving/sluice/serving"
)

// PlanFailure counts the requests for a plan that failed for one reason.
type PlanFailure struct {
	Reason string  `json:"reason"`
	Count  int64   `json:"count"`
	FirstS float64 `json:"first_s"` // when the first one failed, in seconds since the run began
	First  string  `json:"first"`   // error of the first one
}

// AddPlanFailure counts a failure for a reason at a time, with its error. It returns the list, as append does.
func AddPlanFailure(list []PlanFailure, reason string, at serving.Time, err string) []PlanFailure {
	k := slices.IndexFunc(list, func(f PlanFailure) bool { return f.Reason == reason })
	if k < 0 {
		list = append(list, PlanFailure{Reason: reason, FirstS: at.Seconds(), First: err})
		k = len(list) - 1
	}
	list[k].Count++
	return list
}

// planFailures writes a line for every report and reason with failed plans.
func planFailures(w io.Writer, names []string, reports []*Report) error {
	n := noteWriter{w: w, names: names}
	for k, r := range reports {
		for _, f := range r.PlanFailures {
			times := "once"
			if f.Count > 1 {
				times = fmt.Sprintf("%d times", f.Count)
			}
			if err := n.line(k, "%s %s, first after %.3g s: %s", f.Reason, times, f.FirstS, f.First); err != nil {
				return err
			}
		}
	}
	return nil
}
