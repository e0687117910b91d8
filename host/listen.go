package host

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"time"

	"github.com/sluice-serving/sluice/api/oip"
	"github.com/sluice-serving/sluice/api/server"
	"github.com/sluice-serving/sluice/host/fault"
	"github.com/sluice-serving/sluice/host/files"
	"github.com/sluice-serving/sluice/host/functions"
	"github.com/sluice-serving/sluice/measure/telemetry"
)

// listen binds the HTTP, gRPC and admin servers to their addresses.
func (s *Server) listen(o ServerOptions) error {
	c, err := s.frontConfig(o)
	if err != nil {
		return err
	}
	if f := s.planned.file; f.Server.AdminToken != "" {
		if c.Token, err = server.Token(f.Path(f.Server.AdminToken)); err != nil {
			return err
		}
	}
	if s.history, err = s.openHistory(); err != nil {
		return err
	}
	c.AdminHandlers = s.adminHandlers(c.Token, o)
	if s.front, err = server.New(c, s.service); err != nil {
		return err
	}
	s.telemetry.CountConnections(func() (out []telemetry.Connections) {
		for _, x := range s.front.Connections() {
			out = append(out, telemetry.Connections(x))
		}
		return out
	})
	return nil
}

// frontConfig returns the configuration of these servers.
func (s *Server) frontConfig(o ServerOptions) (server.Config, error) {
	file := &s.planned.file.Server
	limits := &file.Limits
	or := func(own, configured string) string {
		if own != "" {
			return own
		}
		return configured
	}
	c := server.Config{
		HTTP: or(o.HTTP, file.HTTP), GRPC: or(o.GRPC, file.GRPC), Admin: or(o.Admin, file.Admin),
		MaxRequest: int64(limits.Request), Memory: requestMemory(int64(limits.Memory)),
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
		AdminAnywhere: file.AdminAnywhere, ModelControl: file.ModelControl, Hosts: file.Hosts,
		SharedMemory: or(o.SharedMemory, file.SharedMemory), Origins: file.Origins, Name: or(o.Name, file.Name),
		Version: Version(), Log: s.log, LogLevel: o.LogLevel,
	}
	var err error
	c.TLS, err = s.tlsConfig()
	return c, err
}

// largestCertificates bounds a file of PEM certificates, in bytes.
const largestCertificates = 1 << 20

// tlsConfig reads the certificates that the file names. It returns nil if it names none.
func (s *Server) tlsConfig() (*tls.Config, error) {
	f := s.planned.file
	names := &f.Server.TLS
	if names.Cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(f.Path(names.Cert), f.Path(names.Key))
	if err != nil {
		return nil, fault.Errorf(fault.Config, "server.tls: %w", err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if names.ClientCA == "" {
		return c, nil
	}
	pem, err := files.Read(f.Path(names.ClientCA), largestCertificates)
	if err != nil {
		return nil, err
	}
	c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !c.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fault.Errorf(fault.Config, "server.tls.client_ca: %s holds no certificate", names.ClientCA)
	}
	return c, nil
}

// adminHandlers returns the handlers of the admin address. Requests that change something need the token, if the file
// names one.
func (s *Server) adminHandlers(token string, o ServerOptions) map[string]http.Handler {
	f := s.planned.file
	out := map[string]http.Handler{
		"/metrics":         s.telemetry.Metrics(),
		"/debug/decisions": s.telemetry.Decisions(),
		"/debug/explain":   s.telemetry.Explanations(),
		"/prices":          server.Guard(token, true, server.Prices(s.service.prices, s.service.setPrice)),
	}
	s.dashboardHandlers(out, token, o)
	if s.functions != nil {
		out["/v1/"] = server.Guard(token, false,
			functions.Handler(s.functions.manager, int64(f.Server.Limits.Model)))
	}
	return out
}
