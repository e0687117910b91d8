package loadgen

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Target is a server under load. Its methods may be called by several goroutines at the same time.
type Target interface {
	// Infer sends one query and waits for its answer. An *Error says how the query ended; any other error means that it
	// failed.
	Infer(ctx context.Context, r *Request) (*Answer, error)
	// Inputs returns the inputs of a model. It gives up after ten seconds. Over gRPC it waits that long for a server
	// that is starting.
	Inputs(ctx context.Context, model string) ([]tensor.Spec, error)
	Close() error
}

// metadataTimeout bounds Inputs.
const metadataTimeout = 10 * time.Second

// Request is one query. Tensors must not be changed while it is under way.
type Request struct {
	Model       string
	Version     string // pins a variant; empty leaves the choice to the server
	Inputs      []tensor.Tensor
	Timeout     time.Duration // the client's deadline; 0 leaves it to the server
	Priority    int32
	MinAccuracy float64
	// Sequence names the stream that the query belongs to; empty for none. First and Last mark its first and its last
	// query.
	Sequence    string
	First, Last bool
	Rate        float64  // declared rate of the sequence, in queries/s; 0 for none
	Outputs     []string // names of those to have; nil for all
	// StageTimings asks for Answer.Stages.
	StageTimings bool
}

// Answer is the answer to a query. Fields that the server did not send are zero.
type Answer struct {
	Outputs  []tensor.Tensor
	Variant  string
	Accuracy float64
	Queue    time.Duration
	Batch    int32
	Stages   []StageTime
	// Calibrated says that the server has sent the confidence that Accuracy is of.
	Calibrated bool
}

// Error is the error of a query that got no answer.
type Error struct {
	Outcome serving.Outcome // Dropped, Refused, Failed or Cancelled
	Message string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Outcome, e.Message) }

// parameter reads a response parameter of sluice's servers. Others are ignored.
func (a *Answer) parameter(key, text string, whole int64, real float64) {
	switch key {
	case "variant":
		a.Variant = text
	case "accuracy":
		a.Accuracy = real
	case "confidence":
		a.Calibrated = true
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
