package plan

// Sections is a set of those parts of a plan that a rule cannot do without.
type Sections uint8

// The sections that a router, batcher or scaler may need.
const (
	Shares        Sections = 1 << iota // Instance.Share
	Limits                             // Variant.Limit, derived from the objective
	BatchTimeouts                      // Instance.BatchTimeout
	Budgets                            // Plan.Budgets
	Tables                             // Plan.Policies
	Values                             // Plan.Values
	Bands                              // Instance.Low and Up
)

var sectionNames = []string{"shares", "limits", "holds", "budgets", "policy tables", "value functions", "rate bands"}

// String lists the sections by name; "none" for the empty set.
func (s Sections) String() string {
	out := ""
	for i, n := range sectionNames {
		if s&(1<<i) != 0 {
			if out != "" {
				out += ", "
			}
			out += n
		}
	}
	if out == "" {
		return "none"
	}
	return out
}
