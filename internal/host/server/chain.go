package server

import (
	"context"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/engine"
	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/serving"
)

// Chain implements server.Service: everything that a query meets between its decoder and the engine, in this order.
// Before it was decoded, its caller was let in and its tenant's quota asked (server/entry.go, server/grpcentry.go). A
// query that the chain refuses since its model was loaded anew goes through it once more (server/chain.go). Queries
// that the server makes itself, to compare or to measure, go to the plane: they are nobody's, and meet none of this.
func (s *service) Chain(front server.Links) server.Infer {
	return server.Chain(s.plane.Infer,
		front.Tenant,             // First: all that follows counts for the caller's tenant, and within its limits.
		front.Deadline,           // A query whose client has given up costs nothing more.
		front.Trace,              // A trace of Triton's kind shows refusals, too, so it is around those that follow.
		s.current,                // Refuses a model that is gone before its place is looked up: another may have it.
		answered(s.refiner.take), // Copies a query to measure its model with, once its sequence no longer waits.
		answered(s.shadow.take),  // Has the answer compared with another variant's; here for the same reason.
		s.inSequence,             // A query that no sequence takes was not asked: nothing below sees it.
		s.saidUnloaded,           // Says that a model is unloaded where the engine refused; a sequence says more.
		s.recorded,               // Queries that the engine refuses are recorded, too: clients asked them.
		s.tracer.Infer,           // Last: its span has the engine's time and no other.
	)
}

// current refuses a query whose app is gone.
func (s *service) current(ctx context.Context, q *dataplane.Request, next server.Infer) (*dataplane.Response, error) {
	if !q.Current(s.spec.Load()) {
		return nil, &dataplane.Error{Outcome: serving.Refused, Reason: engine.AppClosed.String(), Closed: true}
	}
	return next(ctx, q)
}

// answered is a link that shows queries to see once they are answered.
func answered(see func(*dataplane.Request, *dataplane.Response)) server.Link {
	return func(ctx context.Context, q *dataplane.Request, next server.Infer) (*dataplane.Response, error) {
		out, err := next(ctx, q)
		if err == nil {
			see(q, out)
		}
		return out, err
	}
}

// inSequence has a query of a model that is told of sequences continue one.
func (s *service) inSequence(ctx context.Context, q *dataplane.Request, next server.Infer) (*dataplane.Response,
	error) {
	ctx, ended, err := s.sequences.admit(ctx, q, s.spec.Load())
	if err != nil {
		return nil, err
	}
	out, err := next(ctx, q)
	ended(err)
	return out, err
}

// saidUnloaded has the error for a query of a model that a client has unloaded say so.
func (s *service) saidUnloaded(ctx context.Context, q *dataplane.Request, next server.Infer) (*dataplane.Response,
	error) {
	out, err := next(ctx, q)
	if err != nil && s.isUnloaded(q.App) {
		return nil, oip.Errorf(oip.Unavailable, "", "model '%s' is unloaded: load it first",
			s.spec.Load().Apps[q.App].Name)
	}
	return out, err
}

// recorded has a share of the queries recorded.
func (s *service) recorded(ctx context.Context, q *dataplane.Request, next server.Infer) (*dataplane.Response, error) {
	s.recorder.take(s.spec.Load(), q)
	return next(ctx, q)
}
