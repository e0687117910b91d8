package dataplane

import (
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Request is a query as a front end submits it.
type Request struct {
	App    serving.AppID
	Inputs []tensor.Tensor
	Items  int   // rows of the inputs, >= 1
	Length int32 // as in serving.Query
	// Outputs names the outputs that the client wants; nil for all. The Response has no others.
	Outputs []string
	// Timeout is the client's deadline counted from now; 0 means the app's SLO.
	Timeout time.Duration
	// Within is how long the client waits at most, counted from now; 0 for ever. It is the deadline where that would be
	// later, and nothing of the query starts after it, also where late queries are served.
	Within   time.Duration
	Priority int32
	// Tenant is 1 + the index of the tenant in Spec.Tenants; 0 for none.
	Tenant      int32
	MinAccuracy float64           // in [0, 1]
	Variant     serving.VariantID // serving.None lets the system choose
	// Generation and VariantGeneration are those of App and Variant where the client's model was looked up. A query for
	// one whose place another has taken since is refused as for a closed app.
	Generation, VariantGeneration uint32
	// Stream names the stream of the query, such as a camera or a call; "" is none. Stateful stages serve the queries
	// of a stream of an app one after the other, and keep a state from one to the next.
	Stream string
	// Owner is whose stream it is: streams of two owners are two, whatever their names. "" is nobody.
	Owner string
	// Begins says that the query is the first of its stream: it does not get the states of an earlier stream of that
	// name. Ends says that it is the last: the states of the stream are deleted.
	Begins, Ends bool
	// Rate is the rate, in queries/s, at which the client will send the queries of the stream. Plans are made for it,
	// until a query Ends the stream or none has come for half a minute. 0 declares nothing.
	Rate float64
	// Declares is how much all streams of the query's tenant may declare together, in queries/s; 0 for the most.
	Declares float64
	// Timings has Response.Stages filled in.
	Timings bool
	// Partial, if not nil, is called with each answer of a model that gives any number of them, on a goroutine of the
	// backend and one at a time. The Response then has no outputs. It may block, which holds the model up.
	Partial func(outputs []tensor.Tensor)
	// Queued, if not nil, is called once the query has its place in the order of arrival. It must not block.
	Queued func()
	// Accepted, if not nil, is called with the query's number before anything happens to it. It must not block and not
	// call the plane.
	Accepted func(serving.QueryID)
}

// rows returns the inputs of some of the items.
func (r *Request) rows(offset, items int) ([]tensor.Tensor, error) {
	if items >= r.Items {
		return r.Inputs, nil
	}
	out := make([]tensor.Tensor, len(r.Inputs))
	for k := range out {
		var err error
		if out[k], err = r.Inputs[k].Rows(int64(offset), int64(offset+items)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Current reports whether App and Variant are still what they were when the request was made. Those that the spec does
// not have are left to the engine.
func (r *Request) Current(spec *serving.Spec) bool {
	if r.App >= 0 && int(r.App) < len(spec.Apps) && spec.Apps[r.App].Generation != r.Generation {
		return false
	}
	return r.Variant < 0 || int(r.Variant) >= len(spec.Variants) ||
		spec.Variants[r.Variant].Generation == r.VariantGeneration
}

// StreamName returns the name under which the plane knows the stream, which its owner is part of; "" for none.
func (r *Request) StreamName() string {
	if r.Stream == "" || r.Owner == "" {
		return r.Stream
	}
	return r.Owner + "\x00" + r.Stream
}

// Response is the answer to a Request.
type Response struct {
	Query    serving.QueryID
	Outputs  []tensor.Tensor
	Variant  serving.VariantID // the variant that answered the last stage
	Late     bool              // answered after its deadline
	Accuracy float64           // product over the stages that served it
	// Calibrated says that Accuracy is that of answers of the Confidence that the query's first had, whose variant may
	// be another one.
	Calibrated bool
	Confidence float32
	Queue      time.Duration // wait before the start of its last batch
	Total      time.Duration // from acceptance to the end of its last batch
	BatchSize  int           // items of the last batch it was in
	Stages     []StageTime   // that served it, if Request.Timings was set
}

// Error says why a query got no answer.
type Error struct {
	Query   serving.QueryID
	Outcome serving.Outcome // Dropped, Refused, Failed or Cancelled
	Reason  string          // one of the engine's reasons, in words a client can act on
	// RetryAfter is the wait after which another try may succeed; 0 when none will.
	RetryAfter time.Duration
	// Unplaced tells that nothing that is loaded could serve the query, which is no fault of it.
	Unplaced bool
	// Expired tells that the query waited for longer than its queue allows, Full that the queue was full, and Closed
	// that its app was closed before the query came.
	Expired, Full, Closed bool
	Cause                 error // the backend's error, for Failed
}

// Error implements error. The text is for clients: it does not hold what another server said (RemoteError).
func (e *Error) Error() string {
	s := fmt.Sprintf("query %d %s: %s", e.Query, e.Outcome, e.Reason)
	if e.Cause != nil {
		s += ": " + forClients(e.Cause)
	}
	return s
}

// Unwrap returns the backend's error.
func (e *Error) Unwrap() error { return e.Cause }
