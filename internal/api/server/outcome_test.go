package server

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/serving"
)

// What a server lacks is never the fault of a request.
func TestWhatRefusalsMean(t *testing.T) {
	lost := errors.New("lost")
	for _, c := range []struct {
		name  string
		err   dataplane.Error
		want  oip.Code
		retry bool
	}{
		{"a full queue", dataplane.Error{Outcome: serving.Refused, Full: true, RetryAfter: time.Second},
			oip.Unavailable, true},
		{"no place", dataplane.Error{Outcome: serving.Refused, Unplaced: true}, oip.Unavailable, false},
		{"no place yet", dataplane.Error{Outcome: serving.Refused, Unplaced: true, RetryAfter: time.Second},
			oip.Unavailable, true},
		{"no place any more", dataplane.Error{Outcome: serving.Failed, Unplaced: true}, oip.Unavailable, false},
		{"no place after a failure", dataplane.Error{Outcome: serving.Failed, Unplaced: true, Cause: lost},
			oip.Unavailable, false},
		{"too long in its queue", dataplane.Error{Outcome: serving.Dropped, Expired: true}, oip.Unavailable, false},
		{"too late", dataplane.Error{Outcome: serving.Dropped}, oip.Late, false},
		{"the client's deadline", dataplane.Error{Outcome: serving.Cancelled, Cause: context.DeadlineExceeded},
			oip.Late, false},
		{"an accuracy that no variant has", dataplane.Error{Outcome: serving.Refused}, oip.Invalid, false},
		{"tensors that do not fit", dataplane.Error{Outcome: serving.Failed, Cause: dataplane.ErrUnfit}, oip.Invalid,
			false},
		{"a model that fails", dataplane.Error{Outcome: serving.Failed, Cause: lost}, oip.Internal, false},
	} {
		e, retry := clientError(&c.err)
		if e.Code != c.want || retry > 0 != c.retry {
			t.Errorf("%s: HTTP %d, again after %v; want %d, %v", c.name, e.Code.HTTP(), retry, c.want.HTTP(), c.retry)
		}
	}
}
