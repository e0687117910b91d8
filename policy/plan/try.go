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
	Late      []float64 // by AppID: share of the app's queries that missed the objective; 0 for one without queries
}
