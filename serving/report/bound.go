package report

import (
	"fmt"
	"io"
)

// Bound is what no run could have passed, whatever its rules: the fluid bound of the arrivals and machines of a run
// (package bound). In a run above it something is wrong with the simulation.
type Bound struct {
	Utility float64 `json:"utility"`
	InTime  float64 `json:"in_time"` // share of the queries in time at that optimum
	// CostPerHour is the least money, in $/h, that serves as many queries of each app in time, as accurately, as the
	// run did; nil where nothing has a price.
	CostPerHour *float64 `json:"cost_per_hour,omitempty"`
	// Tolerance is by how much, relatively, a run may be above the bound by chance: its batches happened to be in time
	// more often than they are on average.
	Tolerance float64       `json:"tolerance,omitempty"`
	WindowS   float64       `json:"window_s,omitempty"`
	Windows   []BoundWindow `json:"windows,omitempty"`
	// Skipped says why there is no bound; all numbers are then 0.
	Skipped string `json:"skipped,omitempty"`
}

// BoundWindow is the bound's optimum in a window, of the queries that arrive there.
type BoundWindow struct {
	AtS     float64 `json:"at_s"`
	Offered int     `json:"offered"`
	Utility float64 `json:"utility"`
}

// beside puts a bound beside the utility and the cost of a run.
func (s *Summary) beside(b *Bound) {
	if b == nil || b.Skipped != "" {
		return
	}
	if s.Utility != nil {
		s.UtilityBound = ptr(b.Utility)
		if b.Utility > 0 {
			s.UtilityRatio = ptr(*s.Utility / b.Utility)
		}
	}
	if s.CostPerHour != nil {
		s.CostBound = b.CostPerHour
	}
}

// AboveBound says in which number the run did better than is possible, and "" where it did not.
func (r *Report) AboveBound() string {
	b, s := r.Bound, &r.Overall
	if b == nil || b.Skipped != "" {
		return ""
	}
	if u := s.Utility; u != nil && *u > b.Utility*(1+b.Tolerance)+rounding {
		return fmt.Sprintf("utility %.4f, and no run can have more than %.4f", *u, b.Utility)
	}
	if c := s.CostPerHour; c != nil && b.CostPerHour != nil && *c < *b.CostPerHour*(1-b.Tolerance)-rounding {
		return fmt.Sprintf("%.4f $/h, and nothing serves as much for less than %.4f $/h", *c, *b.CostPerHour)
	}
	return ""
}

// rounding is the error of the solver, whose tolerance is about 1e-7 for each row.
const rounding = 1e-5

// bounds writes a line for every report whose bound was skipped.
func bounds(w io.Writer, names []string, reports []*Report) error {
	n := noteWriter{w: w, names: names}
	for k, r := range reports {
		if r.Bound == nil || r.Bound.Skipped == "" {
			continue
		}
		if err := n.line(k, "no bound: %s", r.Bound.Skipped); err != nil {
			return err
		}
	}
	return nil
}
