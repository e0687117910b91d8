// Package tracing makes OpenTelemetry spans of requests: what came in with the caller's W3C trace context, and how the
// query waited, was batched and ran, stage by stage. Spans leave in batches by OTLP. What does not fit into the bounded
// queue, or cannot be delivered, is dropped: nothing here waits for a collector.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluice-serving/sluice/internal/measure/steps"
	"github.com/sluice-serving/sluice/serving"
)

// Bounds of what waits to be delivered.
const (
	queueSpans    = 4096 // that wait; further ones are dropped
	batchSpans    = 512  // of one delivery
	batchWait     = time.Second
	exportTimeout = 5 * time.Second
	closeTimeout  = 2 * time.Second // to deliver what is left in the end
)

// Config says where spans go.
type Config struct {
	// Endpoint is the collector: http://HOST:PORT or https://HOST:PORT for OTLP over HTTP, grpc://HOST:PORT or
	// grpcs://HOST:PORT for OTLP over gRPC; package config checks it.
	Endpoint string
	// Share is the part of the requests that is traced, in [0, 1], of those whose callers do not say. A caller's own
	// decision, in traceparent, counts.
	Share   float64
	Headers map[string]string // sent with each delivery, such as for authentication
	Name    string            // of this service
	Version string
	Trouble func(error) // is told of deliveries that fail; it must not block
}

// Tracer follows requests. A nil Tracer follows none. Its methods are safe for concurrent use.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	context  propagation.TextMapPropagator
	queries  *queries
	explain  func(serving.QueryID) (*steps.Explanation, bool)
	begun    time.Time // of the clock of explanations
	exported *counting
}

// New returns a Tracer. It connects to nothing yet: a collector may come later.
func New(ctx context.Context, c Config) (*Tracer, error) {
	exporter, err := otlptrace.New(ctx, client(&c))
	if err != nil {
		return nil, err
	}
	t := &Tracer{
		context: propagation.TraceContext{}, queries: newQueries(),
		exported: &counting{SpanExporter: exporter, trouble: c.Trouble},
	}
	t.provider = sdk.NewTracerProvider(
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(c.Share))),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", c.Name),
			attribute.String("service.version", c.Version))),
		sdk.WithSpanProcessor(ended{&t.exported.ended}),
		sdk.WithBatcher(t.exported, sdk.WithMaxQueueSize(queueSpans), sdk.WithMaxExportBatchSize(batchSpans),
			sdk.WithBatchTimeout(batchWait), sdk.WithExportTimeout(exportTimeout)),
	)
	t.tracer = t.provider.Tracer("github.com/sluice-serving/sluice")
	return t, nil
}

func client(c *Config) otlptrace.Client {
	scheme, rest, _ := strings.Cut(c.Endpoint, "://")
	if scheme == "grpc" || scheme == "grpcs" {
		o := []otlptracegrpc.Option{otlptracegrpc.WithEndpoint(rest), otlptracegrpc.WithHeaders(c.Headers),
			otlptracegrpc.WithTimeout(exportTimeout)}
		if scheme == "grpc" {
			o = append(o, otlptracegrpc.WithInsecure())
		}
		return otlptracegrpc.NewClient(o...)
	}
	endpoint := strings.TrimRight(c.Endpoint, "/")
	if !strings.Contains(rest, "/") || strings.HasSuffix(rest, "/") {
		endpoint += "/v1/traces" // of the protocol's specification
	}
	return otlptracehttp.NewClient(otlptracehttp.WithEndpointURL(endpoint), otlptracehttp.WithHeaders(c.Headers),
		otlptracehttp.WithTimeout(exportTimeout))
}

// Follow says where explanations of queries come from, and when their clock began. It is called once, before requests
// come.
func (t *Tracer) Follow(explain func(serving.QueryID) (*steps.Explanation, bool), begun time.Time) {
	t.explain, t.begun = explain, begun
}

// Close delivers what is left, within a bound.
func (t *Tracer) Close() error {
	if t == nil {
		return nil
	}
	ctx, done := context.WithTimeout(context.Background(), closeTimeout)
	defer done()
	if err := t.provider.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil // a collector that is away is no fault of ours
}

// Counts are numbers of spans: that have ended, that were delivered, that could not be delivered. Others wait or were
// dropped.
func (t *Tracer) Counts() (ended, delivered, failed uint64) {
	if t == nil {
		return 0, 0, 0
	}
	return t.exported.ended.Load(), t.exported.delivered.Load(), t.exported.failed.Load()
}

// counting counts what an exporter delivers, and keeps its errors from the log's flood: one a minute is told.
type counting struct {
	sdk.SpanExporter
	trouble                  func(error)
	told                     atomic.Int64 // Unix time
	ended, delivered, failed atomic.Uint64
}

// ExportSpans implements sdk.SpanExporter.
func (c *counting) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		c.delivered.Add(uint64(len(spans)))
		return nil
	}
	c.failed.Add(uint64(len(spans)))
	now, told := time.Now().Unix(), c.told.Load()
	if c.trouble != nil && now-told >= 60 && c.told.CompareAndSwap(told, now) {
		c.trouble(fmt.Errorf("traces are not delivered (server.tracing.endpoint): %w", err))
	}
	return nil // otherwise the library would write it to the standard error output
}

// ended counts spans.
type ended struct{ n *atomic.Uint64 }

// OnStart implements sdk.SpanProcessor.
func (ended) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd implements sdk.SpanProcessor.
func (e ended) OnEnd(sdk.ReadOnlySpan) { e.n.Add(1) }

// Shutdown implements sdk.SpanProcessor.
func (ended) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdk.SpanProcessor.
func (ended) ForceFlush(context.Context) error { return nil }

// HTTP returns a handler with a span around every request for inference.
func (t *Tracer) HTTP(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || !strings.HasPrefix(r.URL.Path, "/v2/models/") &&
			!strings.HasPrefix(r.URL.Path, "/v1/models/") {
			next.ServeHTTP(w, r)
			return
		}
		ctx := t.context.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := t.tracer.Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
			attribute.String("http.request.method", r.Method), attribute.String("url.path", r.URL.Path)))
		defer span.End()
		if !span.IsRecording() {
			next.ServeHTTP(w, r.WithContext(ctx))
			return
		}
		status := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(status, r.WithContext(ctx))
		span.SetAttributes(attribute.Int("http.response.status_code", status.status))
		if status.status >= http.StatusInternalServerError {
			setFailed(span, http.StatusText(status.status))
		}
	})
}

// statusWriter keeps the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Flush implements http.Flusher.
func (w *statusWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
