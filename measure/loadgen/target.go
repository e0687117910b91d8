package loadgen

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Target is a server under load. Its methods may be called by many goroutines at once.
type Target interface {
	// Infer sends one query. An error that says how the query ended is an *Error; any other counts as failed.
	Infer(ctx context.Context, r *Request) (*Answer, error)
	// Inputs returns the inputs that a model takes. It gives up after ten seconds; over gRPC it
	// waits that long for a server that is still starting.
	Inputs(ctx context.Context, model string) ([]tensor.Spec, error)
	Close() error
}

// metadataTimeout bounds Inputs.
const metadataTimeout = 10 * time.Second

// Request is one query as a client makes it.
type Request struct {
	Model       string
	Version     string // pins a variant; empty leaves the choice to the server
	Inputs      []tensor.Tensor
	Timeout     time.Duration // the client's deadline; 0 leaves it to the server
	Priority    int32
	MinAccuracy float64
	// Sequence names what the query is a part of; "" is none. First and Last say that it is the first or the last of
	// it.
	Sequence    string
	First, Last bool
	Rate        float64 // of the sequence, in queries/s, where the client declares one; 0 for none
	// StageTimings asks for Answer.Stages.
	StageTimings bool
}

// Answer is what a server said. Fields that it did not send are zero.
type Answer struct {
	Outputs  []tensor.Tensor
	Variant  string
	Accuracy float64
	Queue    time.Duration
	Batch    int32
	Stages   []StageTime
}

// Error is a query without an answer.
type Error struct {
	Outcome serving.Outcome // Dropped, Refused, Failed or Cancelled
	Message string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Outcome, e.Message) }

// parameter takes a response parameter that sluice's servers send; others are ignored.
func (a *Answer) parameter(key, text string, whole int64, real float64) {
	switch key {
	case "variant":
		a.Variant = text
	case "accuracy":
		a.Accuracy = real
	case "queue_us":
		a.Queue = micros(whole)
	case "batch_size":
		a.Batch = count(whole)
	default:
		a.stage(key, whole)
	}
}

func clampInt(f float64) int64 {
	if !(math.Abs(f) < 1<<62) {
		return 0
	}
	return int64(f)
}
