package dataplane

import (
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Request is a query from a front end.
type Request struct {
	App    serving.AppID
	Inputs []tensor.Tensor
	Items  int // rows of the inputs, at least 1
	// Timeout is the client's deadline counted from now; 0 means the app's SLO.
	Timeout     time.Duration
	Priority    int32
	MinAccuracy float64           // in [0, 1]
	Variant     serving.VariantID // serving.None lets the system choose
	// Stream names the stream that the query belongs to, such as a camera's; "" is none. Stateful stages serve the
	// queries of an app's stream in order and keep its state.
	Stream string
	// Begins is set on the first query of its stream: it gets no state of an earlier stream of that name. Ends is set
	// on the last one: the stream's state is deleted.
	Begins, Ends bool
	// Rate is the rate, in queries/s, at which the client will send the queries of the stream, until one Ends it or
	// none has come for half a minute. Plans are made for it. 0 leaves the declared rate as it is.
	Rate float64
	// Timings asks for Response.Stages.
	Timings bool
	// Queued, if not nil, is called when the query has its place in the order of arrival. It must not block.
	Queued func()
}

// Response is the answer to a Request.
type Response struct {
	Query     serving.QueryID
	Outputs   []tensor.Tensor
	Variant   serving.VariantID // the variant that answered the last stage
	Late      bool              // answered after its deadline
	Accuracy  float64           // product over the stages that ran
	Queue     time.Duration     // waited before its last batch started
	Total     time.Duration     // from acceptance to the end of its last batch
	BatchSize int               // items of the last batch it was in
	Stages    []StageTime       // the stages that ran, when the request asked for them
}

// Error says why a query got no answer.
type Error struct {
	Query   serving.QueryID
	Outcome serving.Outcome // Dropped, Refused, Failed or Cancelled
	Reason  string          // one of the engine's reasons, in words a client can act on
	// RetryAfter is when another attempt may succeed; 0 when none will.
	RetryAfter time.Duration
	Cause      error // the backend's error, for Failed
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
