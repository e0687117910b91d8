package dataplane

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-serving/sluice/serving"
)

// RemoteError is the error of a Runner that runs batches on another server or in another process. Err may hold texts
// and addresses of it, which are for the log; clients read What alone.
type RemoteError struct {
	What string
	// WrongAnswer is set where a server elsewhere answered, and its answer does not fit its own description of the
	// model.
	WrongAnswer bool
	Err         error
}

// Error implements error. The text is for the log.
func (e *RemoteError) Error() string { return e.What + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e *RemoteError) Unwrap() error { return e.Err }

// forClients returns the text of a cause that clients may read.
func forClients(cause error) string {
	if r := (*RemoteError)(nil); errors.As(cause, &r) {
		return r.What
	}
	return cause.Error()
}

// breakagePause is the least time between two reports of broken batches on a worker: clients can cause any number.
const breakagePause = time.Second

// breakages reports broken batches.
type breakages struct {
	last   map[serving.WorkerID]serving.Time
	unsaid map[serving.WorkerID]int // since the last report
}

// report returns an error to be logged for a broken batch; nil where one was reported a moment ago.
func (b *breakages) report(now serving.Time, w serving.WorkerID, worker string, j *job) error {
	if b.last == nil {
		b.last, b.unsaid = make(map[serving.WorkerID]serving.Time), make(map[serving.WorkerID]int)
	}
	if last, before := b.last[w]; before && now.Sub(last) < breakagePause {
		b.unsaid[w]++
		return nil
	}
	more := ""
	if n := b.unsaid[w]; n > 0 {
		more = fmt.Sprintf(" (and %d more since the last such line)", n)
	}
	b.last[w], b.unsaid[w] = now, 0
	return fmt.Errorf("batch %d broke on instance %d of worker %q%s: %w", j.batch.ID, j.instance.id, worker, more,
		j.err)
}
