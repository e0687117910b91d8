package serving

import "time"

// Query is one request with a deadline.
type Query struct {
	ID      QueryID
	App     AppID
	Arrived Time
	// Deadline is absolute. Drivers set it to Arrived plus the app's SLO, unless the client asked for another.
	Deadline Time
	// Items is the number of inputs that the query carries, its own batch dimension; at least 1.
	Items int32
	// Length is that of its longest item, in the unit of its model: tokens, pixels. 0 is for one that is not known.
	Length int32
	// Priority orders queries before deadlines do. 1 comes first, larger numbers later, and 0, the default, last.
	Priority int32
	// MinAccuracy, in [0, 1], is the least accuracy of a variant that may answer the query.
	MinAccuracy float64
	// Variant is the only variant that may serve the query, or None for any.
	Variant VariantID
	// Stream identifies the stream that the query belongs to, such as a camera or a call; 0 for none. A stateful stage
	// serves the queries of a stream one at a time, in the order of their arrival.
	Stream uint64
	// Slack is what a driver on the real clock keeps free before the latest start of the query, for timers that fire
	// late and hand-overs. Such a driver gives at least a nanosecond; 0 is for virtual clocks, which are never late.
	Slack time.Duration
	// QueueTimeout is how long the client wants the query to wait for its first stage at most, where that stage has
	// rules that heed it; 0 for no wish.
	QueueTimeout time.Duration
	// Expires is when the client no longer waits: nothing of the query starts later, also where late queries are
	// served. 0 for never.
	Expires Time
	// Own says that the deadline is the client's and the app's objective is proposed. Such a query is given up when its
	// deadline cannot be met: somebody asked for it.
	Own bool
	// Tenant is 1 + the index in Spec.Tenants of the tenant that sends the query; 0 for none.
	Tenant int32
}

// Outcome is how a query ended.
type Outcome uint8

const (
	// Served queries got an answer, in time or late.
	Served Outcome = iota
	// Dropped queries were given up because their deadline had passed or was certain to pass.
	Dropped
	// Refused queries were turned away on arrival: the queue was full, or nothing can ever serve them.
	Refused
	// Failed queries were accepted, but every attempt to run them failed.
	Failed
	// Cancelled queries have lost their client.
	Cancelled
)

var outcomeNames = [...]string{"served", "dropped", "refused", "failed", "cancelled"}

// Outcomes is the number of distinct outcomes.
const Outcomes = len(outcomeNames)

// String returns the word that metrics and reports use.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "unknown"
}

// ParseOutcome is the inverse of String; ok is false for a word that names no outcome.
func ParseOutcome(s string) (Outcome, bool) {
	for i, n := range outcomeNames {
		if n == s {
			return Outcome(i), true
		}
	}
	return 0, false
}
