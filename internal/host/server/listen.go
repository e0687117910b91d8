package server

import (
	"net/http"
	"time"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/api/server"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/functions"
	"github.com/sluice-serving/sluice/internal/host/machines"
	"github.com/sluice-serving/sluice/internal/measure/telemetry"
)

// listen binds the HTTP, gRPC and admin servers to their addresses.
func (s *Server) listen(o Options) error {
	c, err := s.frontConfig(o)
	if err != nil {
		return err
	}
	if err := s.admit(&c); err != nil {
		return err
	}
	if s.history, err = s.openHistory(); err != nil {
		return err
	}
	c.AdminHandlers, c.AdminPage = s.adminHandlers(c.Token, o), publicPage
	c.Trouble = s.trouble
	s.trace(&c)
	if s.front, err = server.New(c, s.service); err != nil {
		return err
	}
	s.telemetry.ShowFailedModels(s.service.failedModels)
	s.telemetry.CountConnections(func() (out []telemetry.Connections) {
		for _, x := range s.front.Connections() {
			out = append(out, telemetry.Connections(x))
		}
		return out
	})
	return nil
}

// frontConfig returns the configuration of these servers.
func (s *Server) frontConfig(o Options) (server.Config, error) {
	file := &s.planned.File().Server
	limits := &file.Limits
	or := func(own, configured string) string {
		if own != "" {
			return own
		}
		return configured
	}
	c := server.Config{
		HTTP: or(o.HTTP, file.HTTP), GRPC: or(o.GRPC, file.GRPC), Admin: or(o.Admin, file.Admin),
		Net:        s.planned.Options().Net,
		MaxRequest: int64(limits.Request), Output: int64(limits.Output),
		Memory:    machines.RequestMemory(int64(limits.Memory)),
		MaxHeader: int(limits.Header), Connections: limits.Connections,
		ConnectionsEach: limits.ConnectionsPerAddress, WriteTimeout: time.Duration(limits.WriteTimeout),
		StreamIdle: time.Duration(limits.StreamIdle), ConnectionAge: time.Duration(limits.ConnectionAge),
		Streams: limits.Streams, Items: limits.Items, UnpackRatio: limits.UnpackRatio,
		Message: oip.Bounds{
			Head: int(limits.JSON), Tensors: limits.Tensors, Parameters: limits.Parameters,
			Elements: int64(limits.Elements),
		},
		ReadTimeout: time.Duration(limits.ReadTimeout), IdleTimeout: time.Duration(limits.IdleTimeout),
		DrainTimeout: time.Duration(file.DrainTimeout), NotReady: time.Duration(file.NotReady), Hurry: o.Hurry,
		AdminAnywhere: file.AdminAnywhere, ModelControl: file.ModelControl || o.ModelControl, Hosts: file.Hosts,
		Traces:       s.planned.File().Path(s.planned.File().Telemetry.Traces),
		SharedMemory: or(o.SharedMemory, file.SharedMemory), Origins: file.Origins, Name: or(o.Name, file.Name),
		Version: host.Version(), Log: s.log, LogLevel: o.LogLevel,
		PublicMetrics: file.PublicMetrics, Reflection: file.Reflection,
	}
	var err error
	if c.TLS, err = s.tlsConfig(); o.Certificate != nil {
		c.TLS, c.Certificate = nil, o.Certificate // its files were read all the same: a front without them cannot serve
	}
	if file.TLS.Admin {
		c.AdminTLS = c.TLS
	}
	return c, err
}

// adminHandlers returns the handlers of the admin address, by path. token is the admin token, or empty.
func (s *Server) adminHandlers(token string, o Options) map[string]http.Handler {
	f := s.planned.File()
	out := map[string]http.Handler{
		server.MetricsPath:     s.telemetry.Metrics(),
		"GET /debug/decisions": s.steps.Decisions(),
		"GET /debug/explain":   s.steps.Explanations(),
		"/prices":              server.Prices(s.service.prices, s.service.setPrice),

		"POST " + functions.PathReload: http.HandlerFunc(s.reloading),
	}
	s.dashboardHandlers(out, token, o)
	if s.functions != nil {
		out["/v1/"] = functions.Handler(s.functions.manager, int64(f.Server.Limits.Model))
	}
	return out
}
