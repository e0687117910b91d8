package tracing

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/serving"
)

// inferMethod is the gRPC method that is traced; those of streams are traced request by request.
const inferMethod = "/inference.GRPCInferenceService/ModelInfer"

// Unary is an interceptor with a span around every call of ModelInfer.
func (t *Tracer) Unary(ctx context.Context, r any, i *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if i.FullMethod != inferMethod {
		return next(ctx, r)
	}
	ctx, span := t.start(ctx)
	defer span.End()
	out, err := next(ctx, r)
	if span.IsRecording() {
		span.SetAttributes(attribute.Int("rpc.grpc.status_code", int(status.Code(err))))
		if err != nil {
			setFailed(span, status.Code(err).String())
		}
	}
	return out, err
}

// start begins the span of a request over gRPC.
func (t *Tracer) start(ctx context.Context) (context.Context, trace.Span) {
	in, _ := metadata.FromIncomingContext(ctx)
	return t.tracer.Start(t.context.Extract(ctx, carrier(in)), "request", trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String("rpc.system", "grpc"),
			attribute.String("rpc.method", inferMethod)))
}

// carrier reads the metadata of a call.
type carrier metadata.MD

// Get implements propagation.TextMapCarrier.
func (c carrier) Get(name string) string {
	if v := metadata.MD(c).Get(name); len(v) > 0 {
		return v[0]
	}
	return ""
}

// Set implements propagation.TextMapCarrier.
func (c carrier) Set(name, value string) { metadata.MD(c).Set(name, value) }

// Keys implements propagation.TextMapCarrier.
func (c carrier) Keys() []string { return slices.Sorted(maps.Keys(c)) }

// Infer has next answer a query, and makes spans below its request's of how it waited and ran. A nil Tracer makes none.
func (t *Tracer) Infer(ctx context.Context, r *dataplane.Request, next func(context.Context, *dataplane.Request) (
	*dataplane.Response, error)) (*dataplane.Response, error) {
	if t == nil {
		return next(ctx, r)
	}
	span := trace.SpanFromContext(ctx)
	if !span.SpanContext().IsValid() { // one request of a stream
		ctx, span = t.start(ctx)
		defer span.End()
	}
	if !span.IsRecording() {
		return next(ctx, r)
	}
	query := serving.QueryID(0)
	traced := *r
	traced.Accepted = func(id serving.QueryID) {
		query = id
		t.queries.add(id, span.SpanContext())
	}
	out, err := next(ctx, &traced)
	if query != 0 && t.explain != nil {
		if x, ok := t.explain(query); ok {
			t.tell(ctx, span, x)
		}
	}
	return out, err
}

// tell makes the spans of a query that has ended: for each batch that it was in, one of waiting, one of the batch with
// links to the other queries in it, and below that one of the model's run. Where an app has several stages, a span for
// each is between.
func (t *Tracer) tell(ctx context.Context, request trace.Span, x *steps.Explanation) {
	request.SetAttributes(attribute.String("sluice.app", x.App), attribute.Int64("sluice.query", int64(x.Query)),
		attribute.Int("sluice.items", int(x.Items)), attribute.Int("sluice.length", int(x.Length)),
		attribute.Float64("sluice.deadline_ms", x.DeadlineMS),
		attribute.Int("sluice.priority", int(x.Priority)),
		attribute.String("sluice.outcome", x.Outcome), attribute.String("sluice.reason", x.Reason),
		attribute.Bool("sluice.late", x.Late), attribute.Float64("sluice.accuracy", x.Accuracy))
	if x.Outcome != serving.Served.String() {
		setFailed(request, x.Reason)
	}
	at := func(s float64) time.Time { return t.begun.Add(time.Duration(s * 1e9)) }
	ms := func(v float64) time.Duration { return time.Duration(v * 1e6) }
	over := at(x.ArrivedS).Add(ms(x.LatencyMS))
	if len(x.Runs) == 0 { // it never ran: all of its time was waiting
		t.span(ctx, "queue", at(x.ArrivedS), over)
		return
	}
	for k := range x.Runs {
		r := &x.Runs[k]
		started := at(r.StartedS)
		end := started.Add(ms(r.TookMS))
		if r.TookMS == 0 || end.After(over) { // it was lost or abandoned
			end = over
		}
		within := ctx
		var stage trace.Span
		if r.Stage != "" {
			within, stage = t.tracer.Start(ctx, "stage "+r.Stage, trace.WithTimestamp(started.Add(-ms(r.WaitTotal))))
		}
		_, queue := t.tracer.Start(within, "queue", trace.WithTimestamp(started.Add(-ms(r.WaitTotal))),
			trace.WithAttributes(attribute.Float64("sluice.waited_for_stream_ms", r.WaitTurn),
				attribute.Float64("sluice.waited_for_instance_ms", r.WaitRoute)))
		queue.End(trace.WithTimestamp(started))
		inBatch, batch := t.tracer.Start(within, "batch", trace.WithTimestamp(started),
			trace.WithLinks(t.queries.links(r.With)...), trace.WithAttributes(
				attribute.Int64("sluice.batch", int64(r.Batch)), attribute.Int("sluice.items", int(r.Items)),
				attribute.Int("sluice.queries", len(r.With)+1), attribute.Int("sluice.instance", int(r.Instance)),
				attribute.String("sluice.why", r.Why)))
		_, run := t.tracer.Start(inBatch, "run", trace.WithTimestamp(started), trace.WithAttributes(
			attribute.String("sluice.variant", r.Variant), attribute.Float64("sluice.expected_ms", r.ExpectedMS)))
		if r.Failed {
			setFailed(run, "the model failed")
		}
		run.End(trace.WithTimestamp(end))
		if k == len(x.Runs)-1 && x.Outcome == serving.Served.String() {
			end = over // the batch includes the hand-over of its end
		}
		batch.End(trace.WithTimestamp(end))
		if stage != nil {
			stage.End(trace.WithTimestamp(end))
		}
	}
}

func (t *Tracer) span(ctx context.Context, name string, from, to time.Time) {
	_, s := t.tracer.Start(ctx, name, trace.WithTimestamp(from))
	s.End(trace.WithTimestamp(to))
}

func setFailed(s trace.Span, why string) { s.SetStatus(codes.Error, why) }

// TraceID returns the trace of a query that is followed, in hexadecimal digits; "" for others.
func (t *Tracer) TraceID(id serving.QueryID) string {
	if c, ok := t.queries.find(id); ok {
		return c.TraceID().String()
	}
	return ""
}

// latestQueries is how many followed queries are remembered, so that batches can be linked to them.
const latestQueries = 4096

// queries are the spans of the latest followed queries.
type queries struct {
	mu   sync.Mutex
	of   map[serving.QueryID]trace.SpanContext
	ring []serving.QueryID
	next int
}

func newQueries() *queries {
	return &queries{of: make(map[serving.QueryID]trace.SpanContext), ring: make([]serving.QueryID, latestQueries)}
}

func (q *queries) add(id serving.QueryID, c trace.SpanContext) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.of, q.ring[q.next])
	q.ring[q.next] = id
	q.next = (q.next + 1) % len(q.ring)
	q.of[id] = c
}

func (q *queries) find(id serving.QueryID) (trace.SpanContext, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c, ok := q.of[id]
	return c, ok
}

func (q *queries) links(ids []serving.QueryID) (out []trace.Link) {
	for _, id := range ids {
		if c, ok := q.find(id); ok {
			out = append(out, trace.Link{SpanContext: c,
				Attributes: []attribute.KeyValue{attribute.Int64("sluice.query", int64(id))}})
		}
	}
	return out
}
