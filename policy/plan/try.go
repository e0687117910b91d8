package plan

import "context"

// Try simulates a plan on arrivals like those of a request: its rates, dispersions, sizes and beliefs, whatever seed.
// It is a port, because planners know no simulator. Equal questions must have equal answers. Neither r nor p is kept or
// changed.
type Try func(ctx context.Context, r *Request, p *Plan) (Tried, error)

// Tried is what a simulated plan has led to.
type Tried struct {
	Violation float64 // share of the queries that missed the objective
	// Deviation is the standard error of Violation.
	Deviation float64
	Accuracy  float64   // mean over answers in time, in [0, 1]; 0 without any
	Utility   float64   // weighted accuracy relative to each app's best, over all queries; see report
	Queries   int       // that arrived; 0 where none do, and then nothing else means anything
	Late      []float64 // by AppID: share of the app's queries that missed the objective; 0 for one without queries
	Accurate  []float64 // by AppID: mean accuracy over the app's answers in time; 0 for one without any
}

// Trial is a candidate that a planner has simulated before it chose a plan.
type Trial struct {
	Candidate   string // what it is, in words
	Machines    []int  // that it uses, by DeviceTypeID
	CostPerHour float64
	Loads       int
	// Sheds says that the candidate leaves out some demand by its own program.
	Sheds   bool `json:",omitempty"`
	Adopted bool `json:",omitempty"`

	Violation, Deviation, Accuracy, Utility float64 // see Tried
}
