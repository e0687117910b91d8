package dataplane

import (
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Request is what a front end hands to the data plane.
type Request struct {
	App    serving.AppID
	Inputs []tensor.Tensor
	Items  int // rows of the inputs, >= 1
	// Timeout is the client's deadline counted from now; 0 means the app's SLO.
	Timeout     time.Duration
	Priority    int32
	MinAccuracy float64           // in [0, 1]
	Variant     serving.VariantID // serving.None lets the system choose
	// Stream names what the query is a part of, a camera or a call; "" is none. Stateful stages serve the queries of a
	// stream of an app one after the other and remember it from one to the next.
	Stream string
	// Begins says that the query is the first of its stream: what is remembered of an earlier one of that name is not
	// for it. Ends says that it is the last: its stream is forgotten.
	Begins, Ends bool
	// Rate is at which rate, in queries/s, the client will send the queries of the stream, until one Ends it or nothing
	// has come of it for half a minute: plans are made for that. 0 leaves what was declared before.
	Rate float64
	// Timings asks for Response.Stages.
	Timings bool
	// Queued, if any, is called when the query has its place in the order of arrival. It must not block.
	Queued func()
}

// Response is the answer to a Request.
type Response struct {
	Query     serving.QueryID
	Outputs   []tensor.Tensor
	Variant   serving.VariantID // the variant that answered the last stage
	Late      bool              // answered after its deadline
	Accuracy  float64           // product over the stages it went through
	Queue     time.Duration     // waited before its last batch started
	Total     time.Duration     // from acceptance to the end of its last batch
	BatchSize int               // items of the last batch it was in
	Stages    []StageTime       // those it went through, when the request asked for them
}

// Error says why a query got no answer.
type Error struct {
	Query   serving.QueryID
	Outcome serving.Outcome // Dropped, Refused, Failed or Cancelled
	Reason  string          // one of the engine's reasons, in words a client can act on
	// RetryAfter is when asking again may help; 0 when it will not.
	RetryAfter time.Duration
	Cause      error // what the backend said, for Failed
}

// Error implements error.
func (e *Error) Error() string {
	s := fmt.Sprintf("query %d %s: %s", e.Query, e.Outcome, e.Reason)
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap returns the backend's error.
func (e *Error) Unwrap() error { return e.Cause }
