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
	Stream      uint64            // follows serving.Query; 0 is none
}

// Response is the answer to a Request.
type Response struct {
	Query     serving.QueryID
	Outputs   []tensor.Tensor
	Variant   serving.VariantID // the variant that answered the last stage
	Accuracy  float64           // product over the stages it went through
	Queue     time.Duration     // waited before its last batch started
	Total     time.Duration     // from acceptance to the end of its last batch
	BatchSize int               // items of the last batch it was in
	Late      bool              // answered after its deadline
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
