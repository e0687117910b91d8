package server

import (
	"context"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	"google.golang.org/grpc"

	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/files"
	"github.com/sluice-serving/sluice/internal/measure/telemetry"
	"github.com/sluice-serving/sluice/internal/measure/tracing"
)

// largestHeaders bounds the file of headers for a collector, in bytes.
const largestHeaders = 64 << 10

// openTracer makes the tracer that the file asks for; none where it does not.
func (s *Server) openTracer(ctx context.Context) error {
	f := s.planned.File()
	c := &f.Server.Tracing
	if c.Endpoint == "" {
		return nil
	}
	headers := map[string]string{}
	if c.Headers != "" {
		text, err := files.Read(f.Path(c.Headers), largestHeaders)
		if err != nil {
			return err
		}
		if headers, err = parseHeaders(string(text)); err != nil {
			return fault.Errorf(fault.Config, "server.tracing.headers: %s: %w", c.Headers, err)
		}
	}
	var err error
	s.tracer, err = tracing.New(ctx, tracing.Config{Endpoint: c.Endpoint, Share: c.Sample, Headers: headers,
		Name: f.Server.Name, Version: host.Version(), Trouble: func(err error) { s.log.Warn("trouble", "error", err) }})
	if err != nil {
		return fault.Errorf(fault.Config, "server.tracing: %w", err)
	}
	s.onRelease(s.tracer.Close)
	return nil
}

// parseHeaders reads a header on each line. The text of an error does not hold what a header says: it may be secret.
func parseHeaders(text string) (map[string]string, error) {
	out := make(map[string]string)
	for k, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if name, value = strings.TrimSpace(name), strings.TrimSpace(value); !ok ||
			!httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, fault.Errorf(fault.Config, "line %d is no header: want NAME: VALUE", k+1)
		}
		out[strings.ToLower(name)] = value
	}
	return out, nil
}

// trace puts the tracer around what the front ends and the service do.
func (s *Server) trace(c *server.Config) {
	if s.tracer == nil {
		return
	}
	s.tracer.Follow(s.steps.Explain, time.Now().Add(-time.Duration(s.plane.Now())))
	c.WrapHTTP = func(h http.Handler) http.Handler { return s.tracer.HTTP(h) }
	c.Intercept = []grpc.UnaryServerInterceptor{s.tracer.Unary}
	s.telemetry.CountSpans(func() telemetry.Spans {
		ended, delivered, failed := s.tracer.Counts()
		return telemetry.Spans{Ended: ended, Delivered: delivered, Failed: failed}
	})
}
