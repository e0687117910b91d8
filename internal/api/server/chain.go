package server

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/serving"
	"github.com/sluice-serving/sluice/tensor"
)

// Infer answers a query, or fails with a *dataplane.Error or an error of the protocol.
type Infer = func(context.Context, *dataplane.Request) (*dataplane.Response, error)

// Link is one thing that a query meets on its way: it refuses the query, or has next answer it.
type Link = func(_ context.Context, _ *dataplane.Request, next Infer) (*dataplane.Response, error)

// Links are those of the front ends, for [Service.Chain].
type Links struct {
	// Tenant gives a query what its caller's tenant may have.
	Tenant Link
	// Deadline bounds a query by the deadline of its context.
	Deadline Link
	// Trace writes a trace of a query, where Triton's trace settings ask for it.
	Trace Link
}

// Chain returns what a query meets before end answers it, the first link first. Links that are nil are left out.
func Chain(end Infer, links ...Link) Infer {
	for _, link := range slices.Backward(links) {
		if link == nil {
			continue
		}
		next := end
		end = func(ctx context.Context, q *dataplane.Request) (*dataplane.Response, error) {
			return link(ctx, q, next)
		}
	}
	return end
}

// infer has a query of a model answered by the service's chain. A model that was loaded anew while the query was read
// is asked in its new place, unless its client has named a version. by is the model that has answered.
func (s *Server) infer(ctx context.Context, m *Model, q *dataplane.Request) (by *Model, answer *dataplane.Response,
	err error) {
	again := *q
	answer, err = s.chain(ctx, q)
	if d := (*dataplane.Error)(nil); !errors.As(err, &d) || !d.Closed || q.Variant != serving.None {
		return m, answer, err
	}
	now, gone := s.usable(m.Name, "")
	if gone != nil || now.App == m.App && now.Generation == m.Generation ||
		!slices.EqualFunc(now.Inputs, m.Inputs, sameTensor) {
		return m, answer, err
	}
	again.App, again.Generation = now.App, now.Generation
	answer, err = s.chain(ctx, &again)
	return now, answer, err
}

func sameTensor(a, b tensor.Spec) bool {
	return a.Name == b.Name && a.DType == b.DType && slices.Equal(a.Shape, b.Shape)
}

// ofTenant has a query, and its stream, belong to its caller's tenant, within that tenant's limits.
func (s *Server) ofTenant(ctx context.Context, q *dataplane.Request, next Infer) (*dataplane.Response, error) {
	if c := callerOf(ctx); c != nil && c.Tenant > 0 {
		if err := s.config.Gate.Spend(c, float64(q.Items)*float64(max(q.Length, 1))); err != nil {
			return nil, err
		}
		t := s.config.Gate.Tenant(c)
		q.Tenant, q.Owner = int32(c.Tenant), t.Name
		if t.MaxTimeout > 0 {
			q.Timeout = min(q.Timeout, t.MaxTimeout)
		}
		switch {
		case t.Priority == 0:
			q.Priority = 0
		case q.Priority > 0:
			q.Priority = max(q.Priority, t.Priority)
		}
		q.Declares = t.Rate // more than it may send
		if t.SequenceRate > 0 {
			q.Rate = min(q.Rate, t.SequenceRate)
		}
	}
	return next(ctx, q)
}

// untilDeadline has a query answered until the deadline of its context, which is gRPC's or that of a header.
func untilDeadline(ctx context.Context, q *dataplane.Request, next Infer) (*dataplane.Response, error) {
	if by, ok := ctx.Deadline(); ok {
		if q.Within = time.Until(by); q.Within <= 0 {
			return nil, context.DeadlineExceeded
		}
	}
	return next(ctx, q)
}
