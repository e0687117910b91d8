package serving

// Query is one request with a deadline.
type Query struct {
	ID      QueryID
	App     AppID
	Arrived Time
	// Deadline is absolute. Drivers set it to Arrived + the app's SLO unless the client asked for another.
	Deadline Time
	// Items is the number of inputs the query carries (its own batch dimension), at least 1.
	Items int32
	// Priority orders queries before deadlines do: 1 is the highest, larger numbers wait behind smaller ones, and 0 is
	// the default, behind every explicit one.
	Priority int32
	// MinAccuracy is the accuracy in [0, 1] below which the client does not want an answer.
	MinAccuracy float64
	// Variant pins the query to one variant, or is None.
	Variant VariantID
	// Stream names what the query is a part of (a camera, a call); 0 is none. Stateful stages serve the queries of a
	// stream one after the other in the order of their arrival.
	Stream uint64
}

// Outcome is how a query ended.
type Outcome uint8

const (
	// Served means that an answer was produced, in time or late.
	Served Outcome = iota
	// Dropped means that it was given up because its deadline had passed or was certain to pass.
	Dropped
	// Refused means that it was turned away on arrival: the queue was full, or nothing can ever serve it.
	Refused
	// Failed means that it was accepted, but every attempt to run it failed.
	Failed
	// Cancelled means that the client went away.
	Cancelled
)

var outcomeNames = [...]string{"served", "dropped", "refused", "failed", "cancelled"}

// Outcomes is the number of distinct outcomes.
const Outcomes = len(outcomeNames)

// String returns the word used in metrics and reports.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "unknown"
}

// ParseOutcome is the inverse of String.
func ParseOutcome(s string) (Outcome, bool) {
	for i, n := range outcomeNames {
		if n == s {
			return Outcome(i), true
		}
	}
	return 0, false
}
