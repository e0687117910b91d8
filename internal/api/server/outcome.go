package server

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/api/access"
	"github.com/sluice-serving/sluice/internal/api/memory"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/serving"
)

// memoryRetry is when a request for which there was no memory may try again.
const memoryRetry = time.Second

// clientError returns the protocol's error for a query that was not served, and when another attempt may succeed; 0
// when none will.
func clientError(err error) (e *oip.Error, retry time.Duration) {
	var known *oip.Error
	if errors.As(err, &known) {
		if known == memory.ErrUsedUp || known == memory.ErrPartUsedUp {
			return known, memoryRetry
		}
		return known, 0
	}
	var refused *access.Error
	if errors.As(err, &refused) {
		code := oip.Limited
		switch refused.Reason {
		case access.Unauthenticated:
			code = oip.Unauthenticated
		case access.Forbidden:
			code = oip.Forbidden
		}
		return oip.Errorf(code, "", "%s", refused.Text), refused.Retry
	}
	var d *dataplane.Error
	if !errors.As(err, &d) {
		switch {
		case errors.Is(err, context.Canceled):
			return oip.Errorf(oip.Gone, "", "cancelled by the client"), 0
		case errors.Is(err, context.DeadlineExceeded):
			return oip.Errorf(oip.Late, "", "the client's deadline passed"), 0
		}
		return oip.Errorf(oip.Internal, "", "%v", err), 0
	}
	switch {
	case d.Full: // in words that clients of Triton look for, as below
		return oip.Errorf(oip.Unavailable, "", "%v: Exceeds maximum queue size", d), d.RetryAfter
	case d.Expired:
		return oip.Errorf(oip.Unavailable, "", "Request timeout expired"), 0
	case d.Unplaced, (d.Outcome == serving.Refused || d.Outcome == serving.Failed) && d.RetryAfter > 0:
		return oip.Errorf(oip.Unavailable, "", "%v", d), d.RetryAfter
	case d.Outcome == serving.Refused:
		return oip.Errorf(oip.Invalid, "", "%v", d), 0
	case d.Outcome == serving.Dropped:
		return oip.Errorf(oip.Late, "", "%v", d), 0
	case d.Outcome == serving.Cancelled && errors.Is(d.Cause, context.DeadlineExceeded):
		// Client and server both know the client's deadline. Whichever notices first, the client reads the same error.
		return oip.Errorf(oip.Late, "", "%v", d), 0
	case d.Outcome == serving.Cancelled:
		return oip.Errorf(oip.Gone, "", "%v", d), 0
	}
	if large := (*dataplane.TooLargeError)(nil); errors.As(d.Cause, &large) {
		return oip.Errorf(oip.TooLarge, "", "query %d: %v", d.Query, large), 0
	}
	if errors.Is(d.Cause, dataplane.ErrUnfit) {
		return oip.Errorf(oip.Invalid, "", "%v", d), 0
	}
	if r := (*dataplane.RemoteError)(nil); errors.As(d.Cause, &r) && r.WrongAnswer {
		return oip.Errorf(oip.BadAnswer, "", "%v", d), 0
	}
	return oip.Errorf(oip.Internal, "", "%v", d), 0
}
